"""API keys as text: `fc_`, 256 random bits, a checksum.

The prefix lets scanners find a leaked key; the checksum lets the service refuse a mistyped one without asking anybody.
"""

import re
import secrets
import zlib

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PREFIX = "fc_"
RANDOM_CHARACTERS = 43  # 62 ** 43 is just more than 2 ** 256
CHECK_CHARACTERS = 6
HINT_CHARACTERS = 6
TOKEN = re.compile(rf"{PREFIX}([0-9A-Za-z]{{{RANDOM_CHARACTERS}}})([0-9A-Za-z]{{{CHECK_CHARACTERS}}})")


def new_token() -> str:
    random = _in_base62(secrets.randbits(256), RANDOM_CHARACTERS)
    return PREFIX + random + _check(random)


def is_token(text: str) -> bool:
    match = TOKEN.fullmatch(text)
    return match is not None and _check(match[1]) == match[2]


def hint(token: str) -> str:
    """Enough to tell keys apart in a list, and too little to guess one."""
    return token[: len(PREFIX) + HINT_CHARACTERS]


def _check(random: str) -> str:
    return _in_base62(zlib.crc32(random.encode()), CHECK_CHARACTERS)


def _in_base62(number: int, width: int) -> str:
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits = ALPHABET[digit] + digits
    return digits
