"""What goes wrong, each in one line a user can act on."""


class RepeatError(Exception):
    """Anything this package refuses to do, said in one line."""


class ImageError(RepeatError):
    """A picture that cannot be read or explained."""


class EncoderError(RepeatError):
    """An encoder that cannot be found, loaded or used."""


class ConfigurationError(RepeatError, ValueError):
    """A method asked for with values that make no sense."""


class OutputError(RepeatError):
    """A result that cannot be written or read back."""
