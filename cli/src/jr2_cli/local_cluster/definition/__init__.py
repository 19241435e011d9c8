"""What a local cluster consists of: processes and their flags, settings, certificates, objects.

Source: design §7 and local-cluster/ (the flags and versions that are known to work).
"""
