"""What the nodes of a cluster can hold: the platforms of images, and the Sandboxes.

Pure: Node objects in, decisions and the lines about them out.
"""
