"""The command line: one file per command; a command's libraries are loaded when it is called."""
