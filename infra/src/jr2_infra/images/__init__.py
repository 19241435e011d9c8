"""Kit images of a checkout: named by what goes into them, built without a base image, delivered.

`checkout` names them, `build/` makes them, `store` keeps what was built, and `deliver` puts them
on the node of the local cluster. Released Kit images are pulled by name, and none of this is used.

Source: design §6.1.
"""
