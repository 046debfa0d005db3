"""Pictures of the dashboard for its documentation, and what they share with its browser tests."""
