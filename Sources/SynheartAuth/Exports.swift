public import AuthContract

// The types of AuthContract that an app needs to configure, sign, send or replace parts, so that importing SynheartAuth is
// enough. The other names of AuthContract are not exported, because names such as `Route` and `Platform` are common in apps.
@_exported public import struct AuthContract.BindingNonce
@_exported public import struct AuthContract.ContractError
@_exported public import struct AuthContract.DevicePublicKey
@_exported public import struct AuthContract.HeaderFields
@_exported public import protocol AuthContract.RandomSource
@_exported public import struct AuthContract.RequestOrigin
@_exported public import struct AuthContract.RequestSignature
@_exported public import enum AuthContract.RotationReason
@_exported public import enum AuthContract.SignatureScheme
@_exported public import struct AuthContract.UnixTime

/// The kind of attestation: `ios` for App Attest, `android` for Play Integrity and key attestation.
public typealias AttestationPlatform = Platform
