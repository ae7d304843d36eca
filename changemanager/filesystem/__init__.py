"""What file systems can do, asked once; one module for each that is special."""
