"""The Machines that the Kit ships."""
