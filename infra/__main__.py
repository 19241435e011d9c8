"""Plain `pulumi preview`, `up` and `destroy`: Pulumi runs this file."""

from jr2_cli.plain import main

main()
