"""`python -m service`: the embedded default, everything on one machine."""

from service.serve import main

if __name__ == "__main__":
    main()
