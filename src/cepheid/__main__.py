"""`python -m cepheid` is the command `cepheid`."""

from cepheid.cli.main import main

if __name__ == "__main__":
    main()
