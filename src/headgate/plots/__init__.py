"""Every figure that Headgate draws, behind the extra `[plot]`."""
