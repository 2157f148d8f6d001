package ai.synheart.auth

import ai.synheart.auth.wire.hex
import ai.synheart.auth.wire.sha256
import ai.synheart.standins.KeystoreDaemon
import ai.synheart.standins.KeystoreDaemon.Call
import kotlin.random.Random
import kotlin.time.Duration
import kotlinx.coroutines.delay
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertTrue
import org.junit.Test

/** Random lives of a phone: its Keystore and its network answer wrongly, it loses keys and records, and its processes die. */
class WalkTest {
    private class Walk(val world: World, val random: Random) {
        val steps = mutableListOf<String>()

        /** Whether the phone permanently lost a key or a record. */
        var hasLost = false

        private val codes = listOf(
            KeystoreDaemon.SYSTEM_ERROR, KeystoreDaemon.LOCKED, KeystoreDaemon.SECURE_HW_BUSY, KeystoreDaemon.INVALID_KEY_BLOB,
            KeystoreDaemon.VALUE_CORRUPTED, KeystoreDaemon.UNKNOWN_ERROR, KeystoreDaemon.TOO_MANY_OPERATIONS, KeystoreDaemon.PERMISSION_DENIED,
        )
        private val operations = mapOf<String, suspend World.(SynheartAuth) -> Any?>(
            "register" to { it.registerDevice(appId) },
            "rotate" to { it.rotateKey(appId) },
            "rotate for compromise" to { it.rotateKey(appId, RotationReason.COMPROMISE) },
            "send" to { it.send(appId, HttpRequest("GET", statusUrl)) },
            "sign" to { it.signRequest(appId, "GET", "/") },
            "isRegistered" to { it.isRegistered(appId) },
            "token" to { it.deviceToken(appId) },
            "maintain" to { it.maintain(appId) },
        )
        private val paths = listOf(World.CHALLENGE, World.REGISTER, World.ROTATE, World.STATUS, World.TOKEN)

        private fun log(step: String) {
            steps.add(step)
        }

        suspend fun step() {
            when (random.nextInt(12)) {
                0, 1, 2, 3 -> operate(world.client, Outside())
                4 -> {
                    val outside = Outside(dyingAt = random.nextInt(12))
                    log("dying at ${outside.dyingAt}")
                    try { operate(SynheartAuth(world.phone.configuration(outside)), outside) } catch (_: Death) { }
                    world.restart()
                }
                5 -> world.restart().also { log("restart") }
                6 -> {
                    val call = Call.entries.random(random)
                    val code = codes.random(random)
                    log("$call answers $code")
                    world.phone.device.keystore.failAlways(call, code)
                }
                7 -> world.phone.device.keystore.works().also { log("the Keystore works") }
                8 -> lose()
                9 -> {
                    val path = paths.random(random)
                    log("lose at $path")
                    if (random.nextBoolean()) world.loseAnswer(path) else world.loseRequest(path)
                }
                10 -> {
                    val millis = random.nextLong(3_000)
                    log("$millis ms")
                    world.phone.clock.elapsedOffset += millis
                }
                else -> {
                    world.phone.isFull = random.nextBoolean()
                    log("full: ${world.phone.isFull}")
                }
            }
        }

        private suspend fun operate(client: SynheartAuth, outside: Outside) {
            val (name, operation) = operations.entries.random(random)
            val outcome = try {
                operation(world, client)
                "done"
            } catch (error: SynheartAuthException) {
                assertNotEquals("$steps, $name: $error", Recovery.RESET, error.recovery)
                "${error.code} ${error.recovery}"
            } finally {
                // A write whose caller no longer waits still takes effect.
                while (!outside.isQuiet) delay(1)
            }
            log("$name: $outcome")
        }

        private fun lose() {
            val keystore = world.phone.device.keystore
            val keys = world.phone.keys(world.appId)
            hasLost = true
            when (random.nextInt(5)) {
                0 -> keys.randomOrNull(random)?.let(keystore::lose)
                1 -> keys.randomOrNull(random)?.let(keystore::corrupt)
                2 -> keystore.deleteEverything()
                3 -> keystore.aliases().forEach(keystore::corrupt)
                else -> {
                    val folder = world.phone.device.credentialEncrypted().resolve("no_backup/ai.synheart.auth").toFile()
                    folder.resolve("${sha256(world.appId.toByteArray()).hex()}.record").takeIf { it.exists() }?.writeText("damaged")
                }
            }
            log("lost")
        }

        /** An app's launch: registers and sends, waits as the errors say, and gives up after some tries. */
        suspend fun launch(): Boolean {
            world.restart()
            repeat(LONGEST) {
                try {
                    world.client.registerDevice(world.appId)
                    return world.send().status == 200
                } catch (error: SynheartAuthException) {
                    log("launch: $error")
                    assertNotEquals("$steps", Recovery.RESET, error.recovery)
                    world.phone.clock.elapsedOffset += (error.retryAfter ?: Duration.ZERO).inWholeMilliseconds.coerceAtMost(2_000)
                }
            }
            return false
        }
    }

    @Test
    fun `whatever a phone went through, the second launch after it signs, and nothing needed a reset`() {
        var kept = 0
        val seeds = (0 until SEEDS).filter(::isSampled)
        for (seed in seeds) {
            World.run {
                val walk = Walk(this, Random(seed))
                val first = register().deviceId
                repeat(STEPS) { walk.step() }
                phone.device.keystore.works()
                phone.isFull = false
                forgetAnswers()
                val isBack = walk.launch()
                val isSigning = walk.launch()
                val what = "seed $seed: ${walk.steps}"
                assertTrue(what, isSigning)
                assertTrue(what, isBack || walk.hasLost)
                if (!walk.hasLost) {
                    kept++
                    assertEquals(what, first, client.getDeviceId(appId))
                }
            }
        }
        assertTrue("$kept", kept in 1 until seeds.size)
    }

    private companion object {
        const val SEEDS = 60
        const val STEPS = 14
        const val LONGEST = 4
    }
}
