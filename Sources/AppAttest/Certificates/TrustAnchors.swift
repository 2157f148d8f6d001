internal import Bytes

/// The roots that chains must end in: one set for attestations, another for receipts.
///
/// The two are not interchangeable: Apple signs attestations under the *Apple App Attestation Root CA*, and receipts under
/// *Apple Root CA - G3*.
public struct TrustAnchors: Sendable {
    package let attestation: [AppleCertificate]
    package let receipts: [AppleCertificate]

    /// Apple's roots (https://www.apple.com/certificateauthority/private/,
    /// https://www.apple.com/certificateauthority/).
    public static let apple = TrustAnchors(
        attestation: certificates(inPEM: appAttestationRootCA), receipts: certificates(inPEM: appleRootCAG3))

    /// Roots in DER, for a test's own authority.
    ///
    /// Fails if an element is not a certificate, or if one of the two lists is empty.
    public init?(attestationRoots: [[UInt8]], receiptRoots: [[UInt8]]) {
        let attestation = attestationRoots.compactMap(AppleCertificate.init)
        let receipts = receiptRoots.compactMap(AppleCertificate.init)
        guard attestation.count == attestationRoots.count, receipts.count == receiptRoots.count,
            !attestation.isEmpty, !receipts.isEmpty
        else { return nil }
        self.init(attestation: attestation, receipts: receipts)
    }

    /// The certificates of a PEM text, as roots for both attestations and receipts. A block whose content is not an X.509
    /// certificate is ignored.
    ///
    /// Fails if the PEM is malformed, if a block has a label other than `CERTIFICATE`, or if no certificate is left.
    public init?(pem: String) {
        let certificates = Self.certificates(inPEM: pem)
        guard !certificates.isEmpty else { return nil }
        self.init(attestation: certificates, receipts: certificates)
    }

    /// The roots of attestations, DER.
    @_spi(Service) public var attestationRoots: [[UInt8]] { attestation.map(\.bytes) }

    /// The roots of receipts, DER.
    @_spi(Service) public var receiptRoots: [[UInt8]] { receipts.map(\.bytes) }

    /// These roots and others.
    public func adding(_ others: TrustAnchors) -> TrustAnchors {
        TrustAnchors(attestation: attestation + others.attestation, receipts: receipts + others.receipts)
    }

    private init(attestation: [AppleCertificate], receipts: [AppleCertificate]) {
        self.attestation = attestation
        self.receipts = receipts
    }

    private static func certificates(inPEM text: String) -> [AppleCertificate] {
        (PEM.blocks(in: text, label: "CERTIFICATE") ?? []).compactMap(AppleCertificate.init)
    }
}

/// SHA-256 1cb9823ba28ba6ad2d33a006941de2ae4f513ef1d4e831b9f7e0fa7b6242c932, valid until 2045-03-15.
private let appAttestationRootCA = """
    -----BEGIN CERTIFICATE-----
    MIICITCCAaegAwIBAgIQC/O+DvHN0uD7jG5yH2IXmDAKBggqhkjOPQQDAzBSMSYw
    JAYDVQQDDB1BcHBsZSBBcHAgQXR0ZXN0YXRpb24gUm9vdCBDQTETMBEGA1UECgwK
    QXBwbGUgSW5jLjETMBEGA1UECAwKQ2FsaWZvcm5pYTAeFw0yMDAzMTgxODMyNTNa
    Fw00NTAzMTUwMDAwMDBaMFIxJjAkBgNVBAMMHUFwcGxlIEFwcCBBdHRlc3RhdGlv
    biBSb290IENBMRMwEQYDVQQKDApBcHBsZSBJbmMuMRMwEQYDVQQIDApDYWxpZm9y
    bmlhMHYwEAYHKoZIzj0CAQYFK4EEACIDYgAERTHhmLW07ATaFQIEVwTtT4dyctdh
    NbJhFs/Ii2FdCgAHGbpphY3+d8qjuDngIN3WVhQUBHAoMeQ/cLiP1sOUtgjqK9au
    Yen1mMEvRq9Sk3Jm5X8U62H+xTD3FE9TgS41o0IwQDAPBgNVHRMBAf8EBTADAQH/
    MB0GA1UdDgQWBBSskRBTM72+aEH/pwyp5frq5eWKoTAOBgNVHQ8BAf8EBAMCAQYw
    CgYIKoZIzj0EAwMDaAAwZQIwQgFGnByvsiVbpTKwSga0kP0e8EeDS4+sQmTvb7vn
    53O5+FRXgeLhpJ06ysC5PrOyAjEAp5U4xDgEgllF7En3VcE3iexZZtKeYnpqtijV
    oyFraWVIyd/dganmrduC1bmTBGwD
    -----END CERTIFICATE-----
    """

/// SHA-256 63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179, valid until 2039-04-30.
private let appleRootCAG3 = """
    -----BEGIN CERTIFICATE-----
    MIICQzCCAcmgAwIBAgIILcX8iNLFS5UwCgYIKoZIzj0EAwMwZzEbMBkGA1UEAwwS
    QXBwbGUgUm9vdCBDQSAtIEczMSYwJAYDVQQLDB1BcHBsZSBDZXJ0aWZpY2F0aW9u
    IEF1dGhvcml0eTETMBEGA1UECgwKQXBwbGUgSW5jLjELMAkGA1UEBhMCVVMwHhcN
    MTQwNDMwMTgxOTA2WhcNMzkwNDMwMTgxOTA2WjBnMRswGQYDVQQDDBJBcHBsZSBS
    b290IENBIC0gRzMxJjAkBgNVBAsMHUFwcGxlIENlcnRpZmljYXRpb24gQXV0aG9y
    aXR5MRMwEQYDVQQKDApBcHBsZSBJbmMuMQswCQYDVQQGEwJVUzB2MBAGByqGSM49
    AgEGBSuBBAAiA2IABJjpLz1AcqTtkyJygRMc3RCV8cWjTnHcFBbZDuWmBSp3ZHtf
    TjjTuxxEtX/1H7YyYl3J6YRbTzBPEVoA/VhYDKX1DyxNB0cTddqXl5dvMVztK517
    IDvYuVTZXpmkOlEKMaNCMEAwHQYDVR0OBBYEFLuw3qFYM4iapIqZ3r6966/ayySr
    MA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgEGMAoGCCqGSM49BAMDA2gA
    MGUCMQCD6cHEFl4aXTQY2e3v9GwOAEZLuN+yRhHFD/3meoyhpmvOwgPUnPWTxnS4
    at+qIxUCMG1mihDK1A3UT82NQz60imOlM27jbdoXt2QfyFMm+YhidDkLF1vLUagM
    6BgD56KyKA==
    -----END CERTIFICATE-----
    """
