"""Programs that run in another interpreter: requests on standard input, replies on standard
output.
"""
