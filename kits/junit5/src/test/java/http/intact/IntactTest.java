package http.intact;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The kit on java.net.http and {@code intact serve}; run by {@code cargo xtask kits} as {@code intact watch --windows -- mvn test}. */
class IntactTest {
    private static final URI SERVER = URI.create(System.getenv("INTACT_TEST_SERVER"));

    private static HttpClient client() {
        return HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    }

    private static void get(HttpClient client) throws Exception {
        client.send(HttpRequest.newBuilder(SERVER).build(), BodyHandlers.ofString());
    }

    @Test
    void requestsOfOneClientPass() throws Exception {
        HttpClient client = client();
        Intact.expect(List.of("avoidable == 0", "requests == 3", "fail-on warning"), () -> {
            for (int n = 0; n < 3; n++) {
                get(client);
            }
        });
    }

    @Test
    void aClientForEachRequestFailsWithTheFinding() {
        AssertionError error = assertThrows(AssertionError.class, () -> Intact.expect("avoidable == 0", () -> {
            for (int n = 0; n < 4; n++) {
                get(client());
            }
        }));
        for (String part : List.of("IntactTest.", "avoidable is 3", "->")) {
            assertTrue(error.getMessage().contains(part), error.getMessage());
        }
    }

    @Test
    void theLineThatOpenedIsNamed() {
        AssertionError error = assertThrows(AssertionError.class, () -> Intact.expect("avoidable == 0", () -> {
            for (int n = 0; n < 4; n++) {
                HttpURLConnection connection = (HttpURLConnection) SERVER.toURL().openConnection();
                connection.setRequestProperty("Connection", "close");
                connection.getInputStream().readAllBytes();
            }
        }));
        String place = " at src/test/java/http/intact/IntactTest.java:";
        assertTrue(error.getMessage().contains(place), error.getMessage());
    }

    @Test
    void aConnectionFromBeforeIsNoneOfTheWindow() throws Exception {
        HttpClient client = client();
        get(client);
        Intact.expect(List.of("connections == 0", "reuse == 100%"), () -> get(client));
    }

    @Test
    void aWindowWithoutTrafficDoesNotPass() {
        AssertionError error = assertThrows(AssertionError.class, () -> Intact.expect("connections == 0", () -> {}));
        assertTrue(error.getMessage().contains("was observed in the window"), error.getMessage());
    }

    @Test
    void aSecondWindowOfTheProcessIsRefused() {
        Intact.NotWatched error = assertThrows(
                Intact.NotWatched.class,
                () -> Intact.expect("connections == 1", () -> Intact.expect("connections == 1", () -> fail("two"))));
        assertTrue(error.getMessage().contains("is open in process"), error.getMessage());
    }

    @Test
    void withoutIntactTheRemedyIsNamed() {
        Intact.NotWatched error = assertThrows(Intact.NotWatched.class, () -> Intact.Control.open(null));
        assertTrue(error.getMessage().contains("intact watch --windows"), error.getMessage());
    }
}
