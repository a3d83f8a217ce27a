"""tf.audio: WAV files."""
import collections

import numpy as np

from .. import _native, constant, int32
from .texts import StringTensor

DecodeWav = collections.namedtuple("DecodeWav", "audio sample_rate")


def decode_wav(contents, desired_channels=-1, desired_samples=-1, name=None):
    """The sound of a WAV file's contents: float32 [samples, channels], and the sample rate in hertz, int32. -1: as many
    channels or samples as the file has. DataLossError for a damaged file or another encoding than 16-bit PCM."""
    audio, rate = _native._decode_wav(StringTensor(contents).item(), desired_channels, desired_samples)
    return DecodeWav(audio, constant(rate, int32))


def encode_wav(audio, sample_rate, name=None):
    """The contents of a WAV file of 16-bit PCM, a string, for audio float32 [samples, channels] within -1 and 1."""
    is_array = isinstance(audio, np.ndarray) and audio.dtype.kind == "f"  # of which float64 is the usual one
    return StringTensor(_native._encode_wav(audio.astype(np.float32) if is_array else audio, int(sample_rate)))
