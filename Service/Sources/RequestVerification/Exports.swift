// The types of a verifier's answers: their members are visible without an import of AuthContract, which is a product of another
// package.
@_exported public import struct AuthContract.AppID
@_exported public import struct AuthContract.Assurance
@_exported public import struct AuthContract.DeviceID
@_exported public import struct AuthContract.DevicePublicKey
@_exported public import struct AuthContract.HeaderFields
@_exported public import enum AuthContract.Platform
@_exported public import enum AuthContract.SignatureScheme
@_exported public import struct AuthContract.UnixTime
@_exported public import struct AuthContract.VerifiedIdentity
