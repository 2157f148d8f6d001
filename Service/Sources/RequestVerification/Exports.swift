// Re-exports the types of a verifier's answers, so that a client sees their members without importing AuthContract, which is a
// product of another package.
@_exported public import struct AuthContract.AppID
@_exported public import struct AuthContract.Assurance
@_exported public import struct AuthContract.DeviceID
@_exported public import struct AuthContract.DevicePublicKey
@_exported public import struct AuthContract.HeaderFields
@_exported public import enum AuthContract.Platform
@_exported public import enum AuthContract.SignatureScheme
@_exported public import struct AuthContract.UnixTime
@_exported public import struct AuthContract.VerifiedIdentity
