"""JSON-RPC 2.0, one message a line, over a pair of file descriptors; knows nothing of what the methods do."""
