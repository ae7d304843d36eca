"""SQL of the ChangeManager's manifest and of the cleaner's intents."""
