// The encodings of the contract's texts. They are public here, and written once, in the room Bytes.
@_exported public import struct Bytes.Base64
@_exported public import enum Bytes.Hexadecimal
@_exported public import func Bytes.constantTimeEquals
