package ai.synheart.auth

import ai.synheart.auth.identity.ClockOffset
import ai.synheart.auth.identity.Identity
import ai.synheart.auth.identity.IdentityEvent
import ai.synheart.auth.identity.IdentityRecord
import ai.synheart.auth.identity.JournalEntry
import ai.synheart.auth.identity.KeyAlias
import ai.synheart.auth.identity.KeyReference
import ai.synheart.auth.identity.NewerVersionException
import ai.synheart.auth.identity.RotationSchedule
import ai.synheart.auth.identity.Suspicion
import ai.synheart.auth.identity.after
import ai.synheart.auth.wire.FormException
import ai.synheart.auth.wire.RotationDemand
import kotlin.random.Random
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

/** The record as data: its form, and every change of it. */
class RecordTest {
    private val appId = "com.example.app"
    private val deviceId = "123e4567-e89b-42d3-a456-426614174000"

    @Test
    fun `a rotation is for a compromise if the service demands that`() {
        val (old, new) = KeyAlias.both(appId)
        val key = KeyReference(old, "old")
        val registered = listOf(
            IdentityEvent.ChallengeReceived("https://auth.example.com"), IdentityEvent.KeyReady(key, false),
            IdentityEvent.RegistrationSending, IdentityEvent.Registered(deviceId, 1_700_000_000),
        ).fold(IdentityRecord(appId)) { record, event -> record.after(event) }
        for ((demanded, expected) in listOf(
            null to RotationReason.SCHEDULED, RotationReason.SCHEDULED to RotationReason.SCHEDULED,
            RotationReason.COMPROMISE to RotationReason.COMPROMISE,
        )) {
            val record = demanded?.let { registered.after(IdentityEvent.RotationDemanded(RotationDemand(1_800_000_000, it), key)) } ?: registered
            val journal = record.after(IdentityEvent.RotationStarted(new, RotationReason.SCHEDULED)).journal
            assertEquals(expected, (journal as JournalEntry.Rotation).reason)
        }
    }

    private fun randomEvent(random: Random): IdentityEvent {
        val alias = KeyAlias.both(appId).random(random)
        val thumbprint = "thumbprint${random.nextInt(3)}"
        val time = random.nextLong(1_700_000_000, 1_800_000_000)
        return listOf(
            { IdentityEvent.ChallengeReceived("https://auth.example.com") },
            { IdentityEvent.KeyReady(KeyReference(alias, thumbprint), random.nextBoolean()) },
            { IdentityEvent.RegistrationSending },
            { IdentityEvent.Registered(deviceId, time) },
            { IdentityEvent.Pending(deviceId, time) },
            { IdentityEvent.RegistrationFailed(random.nextBoolean()) },
            { IdentityEvent.RotationStarted(alias, RotationReason.entries.random(random)) },
            { IdentityEvent.RotationSending(thumbprint, time) },
            { IdentityEvent.RotationCopiesDated(time) },
            { IdentityEvent.RotationCopiesRefused },
            { IdentityEvent.RotationKeyForgotten },
            { IdentityEvent.RotationConfirmed(time) },
            { IdentityEvent.RotationSuspended(random.nextBoolean()) },
            { IdentityEvent.RotationAbandoned },
            { IdentityEvent.RotationDemanded(RotationDemand(time, RotationReason.entries.random(random)), KeyReference(alias, thumbprint)) },
            { IdentityEvent.KeyDisposed },
            { IdentityEvent.KeySuspected(KeyReference(alias, thumbprint), Suspicion(alias, "launch", time)) },
            { IdentityEvent.KeyProved(alias) },
            { IdentityEvent.KeyLost(KeyReference(alias, thumbprint)) },
            { IdentityEvent.Wiped },
            { IdentityEvent.ResetStarted(ResetReason.entries.random(random)) },
            { IdentityEvent.ClockLearned(ClockOffset.of(random.nextLong(-80_000_000, 80_000_000))!!) },
            { IdentityEvent.SchemeUsed(SignatureScheme.entries.random(random)) },
            { IdentityEvent.AuthOriginMoved("https://new.example.com") },
        ).random(random)()
    }

    @Test
    fun `whatever happens, the record is consistent, and reads as it was written`() {
        val random = Random(20_260_101)
        val seen = HashSet<Pair<IdentityState, Identity>>()
        repeat(2_000) {
            var record = IdentityRecord(appId)
            repeat(40) {
                val before = record
                record = try {
                    record.after(randomEvent(random))
                } catch (_: SynheartAuthException.InvalidStateTransition) {
                    before
                }
                assertTrue("$before -> $record", record.isConsistent)
                assertEquals(record, IdentityRecord.parse(record.toBytes(), appId))
                // The signing key is never the one that a rotation makes.
                val rotation = record.journal as? JournalEntry.Rotation
                if (rotation != null) assertFalse("$record", rotation.alias == record.key?.alias)
                seen.add(record.state to record.identity)
            }
        }
        assertEquals(8, seen.size)
    }

    @Test
    fun `a record of another form is refused`() {
        val text = String(IdentityRecord(appId).toBytes())
        IdentityRecord.parse(text.toByteArray(), appId)
        val others = listOf(
            "", "{}", "[]", text.dropLast(1), "$text ,", text.replace("\"version\":1", "\"version\":0"), text.replace(appId, "com.example.other"),
            text.replace("\"android\"", "\"ios\""), text.replace("unregistered", "registered"), text.replace("\"none\"", "\"active\""),
            text.replace("\"clock_offset_ms\":0", "\"clock_offset_ms\":86400001"), text.replace("\"scheme_floor\":1", "\"scheme_floor\":3"),
            text.replace("{\"version\"", "{\"key_alias\":\"another\",\"key_thumbprint\":\"t\",\"version\""),
            text.replace("{\"version\"", "{\"journal\":{\"operation\":\"another\"},\"version\""),
            text.replace("{\"version\"", "{\"suspicions\":{\"another\":{\"launch\":\"l\",\"at_ms\":1}},\"version\""),
            text.replace("{\"version\"", "{\"suspicions\":{\"synheart_auth_$appId\":{}},\"version\""),
        )
        assertThrows(NewerVersionException::class.java) { IdentityRecord.parse(text.replace("\"version\":1", "\"version\":2").toByteArray(), appId) }
        for (other in others) assertThrows(other, FormException::class.java) { IdentityRecord.parse(other.toByteArray(), appId) }
    }

    @Test
    fun `a key is due before it is 90 days old`() {
        val day = 86_400L
        val record = IdentityRecord(
            appId, IdentityState.REGISTERED, Identity.ACTIVE, deviceId, KeyReference(KeyAlias.primary(appId), "t"), registeredAt = 0,
        )
        assertFalse(RotationSchedule.isDue(record, 81 * day - 1))
        assertTrue(RotationSchedule.isDue(record, 90 * day))
        assertFalse(RotationSchedule.isDue(record.copy(keyRotatedAt = 50 * day), 90 * day))
        assertTrue(RotationSchedule.isDue(record.copy(rotationDemand = RotationDemand(1, RotationReason.SCHEDULED)), 0))
        assertFalse(RotationSchedule.isDue(IdentityRecord(appId), 1000 * day))
    }

    @Test
    fun `a key that is dated in the future is due, unless the clocks differ by less than a day`() {
        val now = 1_800_000_000L
        val record = IdentityRecord(appId, IdentityState.REGISTERED, Identity.ACTIVE, deviceId, KeyReference(KeyAlias.primary(appId), "t"))
        for ((ahead, isDue) in listOf(0L to false, 86_400L to false, 86_401L to true, 315_360_000L to true)) {
            assertEquals("$ahead", isDue, RotationSchedule.isDue(record.copy(registeredAt = now + ahead), now))
            assertEquals("$ahead", isDue, RotationSchedule.isDue(record.copy(registeredAt = 0, keyRotatedAt = now + ahead), now))
        }
    }

    @Test
    fun `a registration is dated by the service, also while the clock is ten years ahead`() {
        for (approval in listOf("auto", "manual")) World.run(edits = arrayOf("registration.approval" to approval)) {
            phone.clock.wallOffset = 3_650L * 86_400_000
            register()
            val ahead = record().registeredAt!! - System.currentTimeMillis() / 1000
            assertTrue("$approval: $ahead s", ahead in -60..60)
        }
    }

    private fun World.storage() = phone.configuration().storage
    private fun World.name() = java.security.MessageDigest.getInstance("SHA-256").digest(appId.toByteArray()).joinToString("") { "%02x".format(it) }

    @Test
    fun `a damaged record is a retryable error at first, and KEY_INVALID from 2 s later`() = World.run {
        val first = register().deviceId
        storage().write(name(), "no record".toByteArray())
        restart()
        for (call in listOf<suspend () -> Any?>({ register() }, { client.signRequest(appId, "GET", "/") }, { client.isRegistered(appId) })) {
            expect<SynheartAuthException.StorageError>(Recovery.RETRY) { call() }
            assertEquals("no record", String(storage().read(name())!!))
        }
        passTwoSeconds()
        assertFalse(client.isRegistered(appId))
        expect<SynheartAuthException.KeyInvalidated>(Recovery.REGISTER) { client.signRequest(appId, "GET", "/") }
        assertEquals(IdentityState.KEY_INVALID, client.state(appId))
        assertNotEquals(first, register().deviceId)
        expectWorking()
    }

    @Test
    fun `damage seen by an earlier launch is confirmed 2 s after the next launch`() = World.run {
        register()
        storage().write(name(), "no record".toByteArray())
        restart()
        expect<SynheartAuthException.StorageError>(Recovery.RETRY) { register() }
        passTwoSeconds()
        restart()
        expect<SynheartAuthException.StorageError>(Recovery.RETRY) { register() }
        passTwoSeconds()
        register()
        expectWorking()
        // A record that is damaged in another way starts a new suspicion, so its first reading is not believed.
        storage().write(name(), "nothing".toByteArray())
        expect<SynheartAuthException.StorageError>(Recovery.RETRY) { register() }
    }

    @Test
    fun `a damaged record can be reset at once`() = World.run {
        register()
        storage().write(name(), "no record".toByteArray())
        restart()
        client.resetDeviceIdentity(appId, ResetReason.KEY_LOST)
        register()
        expectWorking()
    }

    @Test
    fun `the record of a newer version stays until an update or a reset`() = World.run {
        register()
        val newer = String(storage().read(name())!!).replace("\"version\":1", "\"version\":2")
        storage().write(name(), newer.toByteArray())
        restart()
        repeat(3) {
            expect<SynheartAuthException.StorageError>(Recovery.NONE) { register() }
            passTwoSeconds()
        }
        assertEquals(newer, String(storage().read(name())!!))
        client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
        register()
        expectWorking()
    }

    @Test
    fun `the record of another auth service is refused until a reset, unless it is an alias`() = World.run {
        val deviceId = register().deviceId
        // The same service under another host name.
        val moved = service.publicUrl.replace("127.0.0.1", "localhost")
        val stranger = SynheartAuth(phone.configuration(baseUrl = moved))
        expect<SynheartAuthException.StorageError>(Recovery.RESET) { stranger.registerDevice(appId) }
        val heir = SynheartAuth(phone.configuration(baseUrl = moved, aliases = setOf(service.publicUrl)))
        assertEquals(deviceId, heir.registerDevice(appId).deviceId)
        assertEquals(DeviceStatus.Status.REGISTERED, heir.status(appId).status)
        expect<SynheartAuthException.StorageError>(Recovery.RESET) { client.registerDevice(appId) }
    }

    @Test
    fun `a full disk does not stop the requests of a service that moved`() = World.run {
        register()
        val moved = service.publicUrl.replace("127.0.0.1", "localhost")
        val heir = SynheartAuth(phone.configuration(baseUrl = moved, aliases = setOf(service.publicUrl)))
        phone.isFull = true
        assertEquals(200, heir.send(appId, HttpRequest("GET", "$moved/auth/v1/device/status")).status)
        assertTrue(heir.isRegistered(appId))
        assertEquals(service.publicUrl, record().authOrigin)
        phone.isFull = false
        heir.signRequest(appId, "GET", "/")
        assertEquals(moved, record().authOrigin)
    }

    @Test
    fun `the record holds no secret`() = World.run {
        register()
        send(scheme = SignatureScheme.TWO)
        val token = client.deviceToken(appId).token
        client.rotateKey(appId)
        val record = String(storage().read(name())!!)
        assertTrue(record, "\"state\":\"registered\"" in record && "\"scheme_floor\":2" in record && "\"key_rotated_at\"" in record)
        assertFalse(token in record || "proof" in record)
    }

    @Test
    fun `the service sees the host's own id`() = World.run {
        val id = "0A47D88F-1725-4754-8C8A-3512998CC0EE"
        SynheartAuth(phone.configuration(deviceLocalId = id)).registerDevice(appId)
        assertTrue("${liveDevices().map(::plain)}", "${liveDevices().map(::plain)}".contains(id, ignoreCase = true))
        expect<SynheartAuthException.NotConfigured>(Recovery.CONFIGURE) { phone.configuration(deviceLocalId = "x") }
    }
}
