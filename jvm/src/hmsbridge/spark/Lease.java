package hmsbridge.spark;

import java.io.Serializable;

/** The protection of a snapshot's files from the cleaner, for as long as they are read. */
public interface Lease extends Serializable {

  /** On the driver, before each job: protects the snapshot, or makes {@link #gone} say why not. */
  void use();

  /** Null while the snapshot is protected, else the message of the error that ends a task. */
  String gone();
}
