"""Kit images of a checkout: named by what goes into them, built without a base image, delivered.

`checkout` names them, `mirror/` fetches the Debian packages that they are made of, `build/` makes
them, `store` keeps what was built, and `delivery/` brings them to the nodes of a cluster. Released
Kit images are pulled by name, and none of this is used.

Source: design §6.1.
"""
