package ai.synheart.auth

/**
 * Whether this run takes the element at a position of a long search: every one, or those whose position is K modulo N if the
 * environment variable TEST_SAMPLE is K/N. `.ci/run` takes a sixth, a different one each day.
 */
internal fun isSampled(position: Int): Boolean {
    val (part, of) = (System.getenv("TEST_SAMPLE") ?: "0/1").split("/").map { it.toInt() }
    check(part in 0 until of) { "TEST_SAMPLE is K/N, K below N" }
    return position % of == part
}
