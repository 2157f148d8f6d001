/// The requirements for a key and the device that holds it. A member that is nil is not checked.
///
/// The properties of key and device are read from `hardwareEnforced`. The application is read from `softwareEnforced`, which
/// Android asserts and the hardware does not.
public struct KeyAttestationPolicy: Sendable, Hashable {
    /// The rule for the validity dates of certificates.
    public enum Dates: String, Sendable, CaseIterable {
        /// Dates are not checked.
        case ignore
        /// Dates are checked by Google's rules. The leaf's dates are ignored. A certificate that is not valid yet is refused. An
        /// expired one is refused unless it was provisioned in the factory.
        case enforce
    }

    /// The purposes that a key must have and may have, by the numbers of KeyMint's `KeyPurpose`.
    public struct Purposes: Sendable, Hashable {
        /// Purposes that the key must have.
        public var required: Set<Int64>
        /// Purposes that the key may have. A key with any other purpose is refused.
        public var allowed: Set<Int64>

        /// A key that signs, and may verify, but has no other purpose. A key with `ATTEST_KEY` could attest other keys. An RSA
        /// key with `DECRYPT` could make signatures by decryption without padding.
        public static let signing = Purposes(required: [2], allowed: [2, 3])

        /// Purposes by their numbers.
        public init(required: Set<Int64>, allowed: Set<Int64>) {
            self.required = required
            self.allowed = allowed
        }
    }

    /// The lowest accepted security level of attestation and key. If it is `strongBox`, the certificate of the attestation key must
    /// also name StrongBox.
    public var minimumSecurityLevel: SecurityLevel?
    /// Whether attestation and key must have the same level.
    public var requiresEqualLevels = true
    /// Whether each certificate's issuer must be the subject of the next. The chains of three genuine device models do
    /// not fulfill this. Google's verifier refuses these chains too.
    public var requiresChainedNames = true
    /// The boot states that are accepted. All but `unverified` require a locked boot loader. `unverified` means an
    /// unlocked boot loader, so listing it accepts unlocked devices.
    public var bootStates: Set<VerifiedBootState>?
    /// Boot keys of accepted systems that the device's manufacturer did not sign, each as the device reports it: the key or its SHA-256. A
    /// locked device that booted `selfSigned` with one of these keys is accepted, whatever `bootStates` contains.
    public var bootKeys: Set<[UInt8]> = []
    /// Whether the hardware must have generated the key itself.
    public var requiresGeneratedKey = true
    /// The purposes that the key must have and may have.
    public var purposes: Purposes?
    /// Algorithms that are accepted, by KeyMint's numbers.
    public var algorithms: Set<Int64>?
    /// The maximum age of the patch levels, in days. The patch level of the system is required. Those of the vendor and of the
    /// boot image are checked if they can be read, because many genuine devices omit them or write 0.
    public var maximumPatchAgeDays: Int?
    /// The rule for the validity dates of certificates.
    public var dates: Dates = .enforce
    /// Packages that are accepted.
    public var packages: Set<String>?
    /// SHA-256 digests of signing certificates. The application must be signed with one of them.
    public var certificateDigests: Set<[UInt8]>?

    /// The policy for registering a key: a P-256 signing key, generated in hardware, of this application, on a device
    /// that booted a system signed by its manufacturer.
    public init(packages: Set<String>, certificateDigests: Set<[UInt8]>) {
        minimumSecurityLevel = .trustedEnvironment
        bootStates = [.verified]
        purposes = .signing
        algorithms = [3]
        self.packages = packages
        self.certificateDigests = certificateDigests
    }

    private init() {}

    /// The default policy of an audit: a key generated in hardware, attestation and key of the same security level, boot
    /// state `Verified`, boot loader locked. It does not check the application, the purposes and algorithm of the key, patch
    /// levels, or the names and dates of certificates.
    public static let audit: KeyAttestationPolicy = {
        var policy = KeyAttestationPolicy()
        policy.minimumSecurityLevel = .trustedEnvironment
        policy.requiresChainedNames = false
        policy.bootStates = [.verified]
        policy.dates = .ignore
        return policy
    }()
}
