import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Runs one client program for the harness. The protocol is in clients/README.md. */
public final class Driver {
    /** What a program provides. */
    interface Client {
        /** Makes a request, reads the body to its end and gives the status. */
        int request(String method, String url, String body) throws Exception;

        /** Makes a GET and leaves the body unread. */
        default int unread(String url) throws Exception {
            throw new UnsupportedOperationException();
        }

        /** What it can do beyond one request after the other. */
        default String skills() {
            return "pause,concurrent,post,status";
        }

        /** The beginning of the names of the jars whose versions are reported. */
        default List<String> jars() {
            return List.of();
        }
    }

    static long idleMs() {
        String given = System.getenv("INTACT_IDLE_MS");
        return given == null ? 4000 : Long.parseLong(given);
    }

    static long lifeMs() {
        String given = System.getenv("INTACT_LIFE_MS");
        return given == null ? 4000 : Long.parseLong(given);
    }

    static long timeoutMs() {
        String given = System.getenv("INTACT_TIMEOUT_MS");
        return given == null ? 10000 : Long.parseLong(given);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // libraries that log do not disturb the protocol
        trust();
        Client client = (Client) Class.forName("Program").getDeclaredConstructor().newInstance();
        StringBuilder versions = new StringBuilder("\"java\":" + quoted(System.getProperty("java.version")));
        for (String jar : client.jars()) {
            versions.append(",").append(quoted(jar)).append(":").append(quoted(versionOf(jar)));
        }
        List<String> can = new ArrayList<>();
        for (String skill : client.skills().split(",")) {
            can.add(quoted(skill));
        }
        out.println("{\"versions\":{" + versions + "},\"can\":" + can + "}");
        ExecutorService threads = Executors.newFixedThreadPool(10);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            String method = words[2];
            Callable<String> one = () -> outcome(client, method, words[4], words[3].equals("read"));
            List<String> outcomes = new ArrayList<>();
            if (words[1].equals("at-once")) {
                List<Future<String>> started = new ArrayList<>();
                for (int at = 0; at < Integer.parseInt(words[0]); at++) {
                    started.add(threads.submit(one));
                }
                for (Future<String> each : started) {
                    outcomes.add(each.get());
                }
            } else {
                for (int at = 0; at < Integer.parseInt(words[0]); at++) {
                    outcomes.add(one.call());
                }
            }
            out.println(outcomes);
        }
        // not exit: clean-ups would close what is the harness's to see
        Runtime.getRuntime().halt(0);
    }

    private static String outcome(Client client, String method, String url, boolean read) {
        try {
            int status = read
                ? client.request(method, url, method.equals("POST") ? "ping" : null)
                : client.unread(url);
            return Integer.toString(status);
        } catch (Exception error) {
            return quoted(error.getClass().getSimpleName());
        }
    }

    private static String quoted(String text) {
        return '"' + text.replace("\"", "'") + '"';
    }

    /** What the name of its jar says. */
    private static String versionOf(String jar) {
        for (String path : System.getProperty("java.class.path").split(":")) {
            String file = Path.of(path).getFileName().toString();
            if (file.startsWith(jar + "-") && Character.isDigit(file.charAt(jar.length() + 1))) {
                return file.substring(jar.length() + 1, file.length() - ".jar".length());
            }
        }
        throw new IllegalStateException(jar + " is not on the class path");
    }

    /** Makes every client trust the test server's authority, before any of them looks. */
    private static void trust() throws Exception {
        String file = System.getenv("INTACT_CA");
        if (file == null) {
            return;
        }
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (FileInputStream input = new FileInputStream(file)) {
            Certificate authority = CertificateFactory.getInstance("X.509").generateCertificate(input);
            store.setCertificateEntry("intact", authority);
        }
        Path path = Files.createTempFile("intact", ".p12");
        try (var output = Files.newOutputStream(path)) {
            store.store(output, "intact".toCharArray());
        }
        path.toFile().deleteOnExit();
        System.setProperty("javax.net.ssl.trustStore", path.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", "intact");
        System.setProperty("javax.net.ssl.trustStoreType", "PKCS12");
    }
}
