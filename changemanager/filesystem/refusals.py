"""What a NameNode answers when it refuses, as errors of Python's one family.

Hadoop's exception class says the kind; its first line is the sentence for people.
"""

from __future__ import annotations

import errno
import re

_KINDS = {
    "FileNotFoundException": errno.ENOENT,
    "PathNotFoundException": errno.ENOENT,
    "AccessControlException": errno.EACCES,
    "AuthorizationException": errno.EACCES,
    "SecurityException": errno.EACCES,
    "FileAlreadyExistsException": errno.EEXIST,
    "AlreadyBeingCreatedException": errno.EEXIST,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "NotADirectoryException": errno.ENOTDIR,
    "PathIsNotDirectoryException": errno.ENOTDIR,
    "NSQuotaExceededException": errno.EDQUOT,
    "DSQuotaExceededException": errno.EDQUOT,
    "QuotaByStorageTypeExceededException": errno.EDQUOT,
    "QuotaExceededException": errno.EDQUOT,
    "DiskOutOfSpaceException": errno.ENOSPC,
    "SafeModeException": errno.EROFS,
    "StandbyException": errno.EAGAIN,
    "UnsupportedOperationException": errno.EOPNOTSUPP,
}
_ADVICE = {
    "SafeModeException": "wait until the NameNode has left safe mode, then try again",
    "StandbyException": "no NameNode of this cluster is active; see hdfs haadmin",
    "NSQuotaExceededException": "raise the quota with hdfs dfsadmin, or free names",
    "DSQuotaExceededException": "raise the quota with hdfs dfsadmin, or free space",
    "QuotaByStorageTypeExceededException": "raise the quota with hdfs dfsadmin, or free space",
    "DiskOutOfSpaceException": "free space, or add DataNodes; see hdfs dfsadmin -report",
    "AccessControlException": "give the user of HADOOP_USER_NAME this right, or set another user",
}
_NO_NODE = re.compile(
    r"could only be written to 0 of .*There are (\d+) datanode\(s\) running and (no|\d+) node"
)
"""HDFS's one sentence for DataNodes that are full and for those that cannot be reached
(BlockManager.chooseTarget4NewBlock); a client excludes those that did not answer it."""
_RPC_ERROR = re.compile(
    r'(?:Fatal)?RPCError\("(?P<kind>[\w.$]+)", "(?P<text>(?:[^"\\]|\\.)*)"\)?', re.DOTALL
)
_OTHER_ERROR = re.compile(r'(?P<kind>\w+)\("(?P<text>(?:[^"\\]|\\.)*)"\)?', re.DOTALL)


def refusal(kind: str, text: str, path: str) -> OSError:
    """The error for a Hadoop exception: `kind` is its class, with or without package."""
    name = re.split(r"[.$]", kind)[-1]
    sentence = text.strip().partition("\n")[0].strip() or name
    if name == "RemoteException" or "safe mode" in sentence.lower():
        name = "SafeModeException" if "safe mode" in sentence.lower() else name
    if name in {"IOException", "RemoteException"} and _is_every_node_full(sentence):
        name = "DiskOutOfSpaceException"
    advice = _ADVICE.get(name)
    whole = f"HDFS: {sentence}" + (f"; {advice}" if advice else "")
    return OSError(_KINDS.get(name, errno.EIO), whole, path)


def _is_every_node_full(sentence: str) -> bool:
    """Whether DataNodes that answer take no block."""
    match = _NO_NODE.search(sentence)
    if match is None:
        return False
    excluded = 0 if match[2] == "no" else int(match[2])
    return int(match[1]) > excluded


def native_refusal(error: BaseException, path: str) -> OSError:
    """The same for what the native client raises: RuntimeErrors whose text is Rust's."""
    text = str(error)
    if isinstance(error, FileNotFoundError):
        return refusal("FileNotFoundException", text or path, path)
    if isinstance(error, FileExistsError):
        return refusal("FileAlreadyExistsException", text, path)
    if isinstance(error, OSError):
        number = error.errno or errno.EIO
        advice = "check host, RPC port and that its NameNode runs"
        return OSError(number, f"HDFS cannot be reached: {text}; {advice}", path)
    match = _RPC_ERROR.search(text) or _OTHER_ERROR.match(text)
    if match is None:
        is_plain = type(error) is RuntimeError
        return refusal("IOException" if is_plain else "UnsupportedOperationException", text, path)
    return refusal(match["kind"], _unescaped(match["text"]), path)


def _unescaped(text: str) -> str:
    """Rust's debug form of a text: only what occurs in sentences is undone."""
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\\\", "\\")
