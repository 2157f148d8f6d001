public import Foundation

/// The requirements for an app's devices. The defaults are as strict as possible without refusing real devices.
public struct AppAttestPolicy: Sendable, Hashable {
    /// The App IDs that may attest.
    public var appIDs: Set<AppleAppID>
    /// The environments whose keys are accepted: by default production alone.
    public var environments: Set<AttestEnvironment>
    /// The categories of signing that are accepted, if the device names one (iOS 27, macOS 27 and later): by default
    /// all that Apple documents. Category and environment are independent.
    public var categories: Set<ValidationCategory>
    /// Whether to accept a category that neither Apple's documentation nor ``categories`` names: by default not.
    public var acceptsUnknownCategories: Bool
    /// The oldest accepted bundle version, if the device names its version; nil accepts any.
    public var minimumBundleVersion: BundleVersion?
    /// Whether to refuse devices that prove no category: all systems before iOS 27 and macOS 27, and assertions by keys that were
    /// attested on such a system.
    public var requiresCategory: Bool
    /// Whether to refuse devices that prove no bundle version.
    public var requiresBundleVersion: Bool
    /// Whether the key of a Mac must be bound to System Integrity Protection and Full Security.
    public var requiresMacAccessControl: Bool
    /// The tolerance for dates, in seconds: a certificate is also accepted for this long before and after its validity.
    /// 0 by default, because Apple back-dates leaves by a day.
    public var clockLeeway: TimeInterval

    /// A policy for these App IDs.
    public init(
        appIDs: Set<AppleAppID>,
        environments: Set<AttestEnvironment> = [.production],
        categories: Set<ValidationCategory> = ValidationCategory.documented,
        acceptsUnknownCategories: Bool = false,
        minimumBundleVersion: BundleVersion? = nil,
        requiresCategory: Bool = false,
        requiresBundleVersion: Bool = false,
        requiresMacAccessControl: Bool = true,
        clockLeeway: TimeInterval = 0
    ) {
        self.appIDs = appIDs
        self.environments = environments
        self.categories = categories
        self.acceptsUnknownCategories = acceptsUnknownCategories
        self.minimumBundleVersion = minimumBundleVersion
        self.requiresCategory = requiresCategory
        self.requiresBundleVersion = requiresBundleVersion
        self.requiresMacAccessControl = requiresMacAccessControl
        self.clockLeeway = clockLeeway
    }
}

extension AppAttestPolicy {
    /// Checks category and bundle version, if the device proves them or the policy requires them.
    ///
    /// - Parameter map: the proven extension map of an attestation or of an assertion; nil if there is none.
    package func requireExtensions(_ map: AuthenticatorExtensions?) throws(AppAttestError) {
        switch map?.category {
        case nil where requiresCategory:
            throw AppAttestError(.categoryMissing, .extensions, "the category is not there, or not proven")
        case let category? where !accepts(category):
            throw AppAttestError(.categoryNotAllowed, .extensions, "category \(category.rawValue)")
        default: break
        }
        guard let text = map?.bundleVersion else {
            guard !requiresBundleVersion else {
                throw AppAttestError(
                    .bundleVersionMissing, .extensions, "the bundle version is not there, or not proven")
            }
            return
        }
        guard let minimumBundleVersion else { return }
        guard let version = BundleVersion(text), version >= minimumBundleVersion else {
            throw AppAttestError(.bundleVersionTooOld, .extensions, "older than \(minimumBundleVersion.text)")
        }
    }

    private func accepts(_ category: ValidationCategory) -> Bool {
        categories.contains(category) || (acceptsUnknownCategories && category.name == nil)
    }
}
