/// What a verifier asks of a key and of the device it lives in. Nil is always: not checked.
///
/// Everything about key and device is read from `hardwareEnforced` alone; the application is Android's own word.
public struct KeyAttestationPolicy: Sendable, Hashable {
    /// How validity is judged.
    public enum Dates: String, Sendable {
        /// Not at all.
        case ignore
        /// By Google's rules: the leaf never; not yet valid refuses; expired refuses unless the factory provisioned.
        case enforce
    }

    /// What may be said of the device's state at boot.
    public struct Purposes: Sendable, Hashable {
        /// Purposes that the key must have.
        public var required: Set<Int64>
        /// Purposes that the key may have; any other refuses.
        public var allowed: Set<Int64>

        /// A key that signs, verifies at most, and does nothing else: one with `ATTEST_KEY` could speak for other keys,
        /// one that decrypts could be made to sign.
        public static let signing = Purposes(required: [2], allowed: [2, 3])

        /// Purposes by their numbers.
        public init(required: Set<Int64>, allowed: Set<Int64>) {
            self.required = required
            self.allowed = allowed
        }
    }

    /// The lowest level of attestation and key. `strongBox` is believed only of a chain whose certificate says so too.
    public var minimumSecurityLevel: SecurityLevel?
    /// Whether attestation and key must be of one level.
    public var requiresEqualLevels = true
    /// Names of the certificates must chain. Three genuine models fail this, and Google's own verifier refuses them.
    public var requiresChainedNames = true
    /// States of boot that are accepted. All but `unverified` ask for a locked boot loader; `unverified` means that it is
    /// unlocked, so listing it accepts that.
    public var bootStates: Set<VerifiedBootState>?
    /// Keys (or their SHA-256, as the device reports them) of other systems that are accepted: a locked device that
    /// booted `selfSigned` with one of them passes whatever `bootStates` says.
    public var bootKeys: Set<[UInt8]> = []
    /// Whether the hardware must have generated the key itself.
    public var requiresGeneratedKey = true
    /// What the key may be for.
    public var purposes: Purposes?
    /// Algorithms that are accepted, by KeyMint's numbers.
    public var algorithms: Set<Int64>?
    /// The greatest age of the patch levels, in days. The system's must be there; the vendor's and the boot image's,
    /// which many genuine devices leave out or write as 0, count if they can be read.
    public var maximumPatchAgeDays: Int?
    /// How validity is judged.
    public var dates: Dates = .enforce
    /// Packages that are accepted.
    public var packages: Set<String>?
    /// SHA-256 digests of signing certificates. The application must carry one of them.
    public var certificateDigests: Set<[UInt8]>?

    /// What a service should ask before it registers a key: a P-256 signing key, generated in hardware, of this
    /// application, on a device that booted what its maker signed.
    public init(packages: Set<String>, certificateDigests: Set<[UInt8]>) {
        minimumSecurityLevel = .trustedEnvironment
        bootStates = [.verified]
        purposes = .signing
        algorithms = [3]
        self.packages = packages
        self.certificateDigests = certificateDigests
    }

    private init() {}

    /// What an audit of attestations asks by default: hardware, Verified and locked, generated. It knows neither the
    /// application nor what its keys are for.
    public static let audit: KeyAttestationPolicy = {
        var policy = KeyAttestationPolicy()
        policy.minimumSecurityLevel = .trustedEnvironment
        policy.requiresChainedNames = false
        policy.bootStates = [.verified]
        policy.dates = .ignore
        return policy
    }()
}
