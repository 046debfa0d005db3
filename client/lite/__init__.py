"""The lite pull consumer: pulls ahead for an application that polls."""
