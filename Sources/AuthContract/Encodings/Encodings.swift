// The contract's text encodings, re-exported: the room Bytes has the one implementation.
@_exported public import struct Bytes.Base64
@_exported public import enum Bytes.Hexadecimal
@_exported public import func Bytes.constantTimeEquals
