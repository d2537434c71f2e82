"""`python -m bot` is the command `watchkeeper`."""

from bot.cli import main

if __name__ == "__main__":
    main()
