"""`python -m repeat_xai`: the command."""

from repeat_xai.cli import main

if __name__ == "__main__":
    main()
