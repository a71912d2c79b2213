"""The most violated ranking beside all rankings."""
