"""Towers that several families share: encoders of images and audio, tokenizers, codecs and speech decoders."""
