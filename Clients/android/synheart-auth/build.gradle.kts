import org.jetbrains.kotlin.gradle.dsl.JvmTarget
import org.jetbrains.kotlin.gradle.dsl.KotlinVersion

plugins {
    alias(libs.plugins.android.library)
}

description = "Device identity: the Kotlin client"
extra["publishedComponent"] = "default"
apply(from = "../gradle/publish.gradle.kts")

android {
    namespace = "ai.synheart.auth"
    compileSdk = 36

    defaultConfig {
        minSdk = 26
        consumerProguardFiles("consumer-rules.pro")
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }

    // Publishes both variants. Development mode is in src/debug, so only the debug build of an app contains it.
    publishing {
        multipleVariants {
            allVariants()
            withSourcesJar()
            withJavadocJar()
        }
    }
}

kotlin {
    explicitApi()
    // The version of the Kotlin standard library in the POM. An app's compiler must be able to read that library.
    coreLibrariesVersion = libs.versions.kotlin.stdlib.get()
    compilerOptions {
        allWarningsAsErrors = true
        // Apps with Kotlin 2.0 can read the result. The compiler warns that this language version is old.
        languageVersion = KotlinVersion.KOTLIN_2_1
        apiVersion = KotlinVersion.KOTLIN_2_1
        jvmTarget = JvmTarget.JVM_1_8
        freeCompilerArgs.add("-Xsuppress-version-warnings")
        // Leaves out the null checks for callers in Java, which cost 6 KB. A null fails where it is used.
        freeCompilerArgs.addAll("-Xno-param-assertions", "-Xno-call-assertions", "-Xno-receiver-assertions")
    }
}

dependencies {
    // The library's public API exposes StateFlow.
    api(libs.coroutines.core)
    // An app that uses Play Integrity, or the interceptor for OkHttp, adds the library itself.
    compileOnly(libs.play.integrity)
    compileOnly(libs.okhttp)
}

// `scripts/test` runs the tests in a JVM, against stand-ins for Android's classes. They are not Gradle tests.
android.sourceSets.named("test") { kotlin.directories.clear() }
