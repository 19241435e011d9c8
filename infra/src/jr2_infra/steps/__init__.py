"""What each dynamic provider does, without Pulumi: plain functions on inputs and surroundings."""
