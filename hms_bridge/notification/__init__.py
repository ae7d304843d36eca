"""SQL of notification events, and their messages."""
