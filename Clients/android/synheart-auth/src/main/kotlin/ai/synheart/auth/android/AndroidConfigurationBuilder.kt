package ai.synheart.auth.android

import ai.synheart.auth.AttestationProvider
import ai.synheart.auth.AuthLogger
import ai.synheart.auth.HttpTransport
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.SynheartAuth
import ai.synheart.auth.SynheartAuthJava
import android.content.Context

/** Makes an [AndroidConfiguration] in Java, which has no default arguments. Values that are not set have the defaults of that class. */
public class AndroidConfigurationBuilder(private val baseUrl: String) {
    private val plain = AndroidConfiguration(baseUrl)
    private var cloudProjectNumber: Long? = null
    private var proof = plain.proof
    private var requests: IntegrityRequests? = null
    private var usesStrongBox = plain.usesStrongBox
    private var attestation: AttestationProvider? = null
    private var transport = plain.transport
    private var logger = plain.logger
    private var origins = plain.origins
    private var aliases = plain.aliases
    private var deviceLocalId: String? = null
    private var rotatesAutomatically = plain.rotatesAutomatically
    private var scheme = plain.scheme

    /** See [AndroidConfiguration.cloudProjectNumber]. */
    public fun cloudProjectNumber(value: Long): AndroidConfigurationBuilder = apply { cloudProjectNumber = value }

    /** See [AndroidConfiguration.proof]. */
    public fun proof(value: AndroidProof): AndroidConfigurationBuilder = apply { proof = value }

    /** See [AndroidConfiguration.requests]. */
    public fun requests(value: IntegrityRequests): AndroidConfigurationBuilder = apply { requests = value }

    /** See [AndroidConfiguration.usesStrongBox]. */
    public fun usesStrongBox(value: Boolean): AndroidConfigurationBuilder = apply { usesStrongBox = value }

    /** See [AndroidConfiguration.attestation]. */
    public fun attestation(value: AttestationProvider): AndroidConfigurationBuilder = apply { attestation = value }

    /** See [AndroidConfiguration.transport]. */
    public fun transport(value: HttpTransport): AndroidConfigurationBuilder = apply { transport = value }

    /** See [AndroidConfiguration.logger]. */
    public fun logger(value: AuthLogger): AndroidConfigurationBuilder = apply { logger = value }

    /** See [AndroidConfiguration.origins]. */
    public fun origins(value: Set<String>): AndroidConfigurationBuilder = apply { origins = value }

    /** See [AndroidConfiguration.aliases]. */
    public fun aliases(value: Set<String>): AndroidConfigurationBuilder = apply { aliases = value }

    /** See [AndroidConfiguration.deviceLocalId]. */
    public fun deviceLocalId(value: String): AndroidConfigurationBuilder = apply { deviceLocalId = value }

    /** See [AndroidConfiguration.rotatesAutomatically]. */
    public fun rotatesAutomatically(value: Boolean): AndroidConfigurationBuilder = apply { rotatesAutomatically = value }

    /** See [AndroidConfiguration.scheme]. */
    public fun scheme(value: SignatureScheme): AndroidConfigurationBuilder = apply { scheme = value }

    /** A client with this configuration. */
    public fun create(context: Context): SynheartAuthJava = SynheartAuthJava(SynheartAuth.create(context, build()))

    /** The configuration. */
    public fun build(): AndroidConfiguration = AndroidConfiguration(
        baseUrl, cloudProjectNumber, proof, requests ?: AndroidConfiguration(baseUrl, cloudProjectNumber).requests, usesStrongBox, attestation,
        transport, logger, origins, aliases, deviceLocalId, rotatesAutomatically, scheme,
    )
}
