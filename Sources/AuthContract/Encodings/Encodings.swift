// The contract's text encodings, re-exported: the module Bytes has the only implementation.
@_exported public import struct Bytes.Base64
@_exported public import enum Bytes.Hexadecimal
@_exported public import func Bytes.constantTimeEquals
