"""Jobs whose cause only exists on a GPU."""
