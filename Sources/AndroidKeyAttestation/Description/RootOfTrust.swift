internal import LenientDER

/// The state of the device, as the boot loader reported it to the hardware.
public struct RootOfTrust: Sendable, Hashable {
    /// The key that signed the system, or its SHA-256; empty or zeros if nothing was verified.
    public let verifiedBootKey: [UInt8]
    /// Whether the boot loader is locked.
    public let isDeviceLocked: Bool
    /// The result of the verified boot.
    public let verifiedBootState: VerifiedBootState
    /// A digest of everything that verified boot checked, since attestation version 3; nil if absent.
    public let verifiedBootHash: [UInt8]?

    init(_ node: DERNode, noting noted: inout QuirkCollector) throws(DERError) {
        var fields = DERFields(try node.sequence(), of: node)
        verifiedBootKey = Array(try fields.next().octetString())
        if verifiedBootKey.count != 32 { noted.note("vbk-len:\(verifiedBootKey.count)") }
        isDeviceLocked = try fields.next().boolean(noting: &noted.quirks)
        noted.take(as: "deviceLocked")
        let state = try fields.next()
        guard let value = Int(exactly: try state.integer(noting: &noted.quirks)),
            let verifiedBootState = VerifiedBootState(rawValue: value), state.tag == .enumerated
        else { throw DERError(.outOfRange, at: state) }
        self.verifiedBootState = verifiedBootState
        verifiedBootHash = try fields.next(ifTagged: .octetString).map { node throws(DERError) in
            Array(try node.octetString())
        }
        fields.skipRest(of: "rootOfTrust", noting: &noted)
    }
}

/// The application that requested the attestation, as asserted by Android (not by the hardware).
public struct AttestationApplicationID: Sendable, Hashable {
    /// One package. If packages share a user id, all of them are listed.
    public struct Package: Sendable, Hashable {
        /// Its name.
        public let name: String
        /// The package's version code.
        public let version: Int64
    }

    /// The packages; `AndroidSystem` if the system itself requested the attestation.
    public let packages: [Package]
    /// The SHA-256 of each certificate that the packages are signed with. Empty after some failures of Android.
    public let signatureDigests: [[UInt8]]

    init(_ node: DERNode, noting noted: inout QuirkCollector) throws(DERError) {
        var fields = DERFields(try node.sequence(), of: node)
        var packages: [Package] = []
        for info in try fields.next().set(noting: &noted.quirks) {
            var parts = DERFields(try info.sequence(), of: info)
            let name = try parts.next()
            let octets = try name.octetString()
            let text = String(decoding: octets, as: UTF8.self)
            guard text.utf8.elementsEqual(octets) else { throw DERError(.invalidContent, at: name) }
            packages.append(Package(name: text, version: try parts.next().integer(noting: &noted.quirks)))
            parts.skipRest(of: "packageInfo", noting: &noted)
        }
        noted.take(as: "packageInfos")
        var digests: [[UInt8]] = []
        for digest in try fields.next().set(noting: &noted.quirks) { digests.append(Array(try digest.octetString())) }
        noted.take(as: "signatureDigests")
        fields.skipRest(of: "attestationApplicationId", noting: &noted)
        self.packages = packages
        self.signatureDigests = digests
    }
}
