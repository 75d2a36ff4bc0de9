// Opens connections at known lines: `// CASE=N` at its end says which case opens how many there.
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.Socket;
import java.net.URL;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.stream.IntStream;

public class Planted {
    static int port;

    interface Step {
        void run() throws Exception;
    }

    static void repeat(int count, Step step) throws Exception {
        for (int nth = 0; nth < count; nth++) step.run();
    }

    static void speak(Socket one) throws Exception {
        one.getOutputStream().write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".getBytes());
        InputStream in = one.getInputStream();
        while (in.read() >= 0) {}
        one.close();
    }

    static void socket() throws Exception {
        speak(new Socket("127.0.0.1", port)); // sync=3 executor=4 platform=2
    }

    static void fetch() throws Exception {
        HttpURLConnection one = (HttpURLConnection) new URL("http://127.0.0.1:" + port + "/").openConnection();
        one.setRequestProperty("Connection", "close");
        one.getInputStream().readAllBytes(); // http=2 reflected=2
    }

    static class Inner {
        Inner() throws Exception {
            speak(new Socket("127.0.0.1", port)); // constructor=2
        }
    }

    static void unchecked(Step step) {
        try {
            step.run();
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    public static void main(String[] words) throws Exception {
        port = Integer.parseInt(words[0]);
        ExecutorService pool = Executors.newFixedThreadPool(2);
        switch (words[1]) {
            case "sync": repeat(3, Planted::socket); break;
            case "http": repeat(2, Planted::fetch); break;
            case "constructor": repeat(2, Inner::new); break;
            case "lambda":
                repeat(2, () -> {
                    speak(new Socket("127.0.0.1", port)); // lambda=2
                });
                break;
            case "executor":
                for (int nth = 0; nth < 4; nth++) pool.submit(() -> unchecked(Planted::socket));
                break;
            case "future":
                CompletableFuture.runAsync(() -> unchecked(() -> {
                    speak(new Socket("127.0.0.1", port)); // future=1
                }), pool).get();
                break;
            case "stream":
                IntStream.range(0, 2).forEach(nth -> unchecked(() -> {
                    speak(new Socket("127.0.0.1", port)); // stream=2
                }));
                break;
            case "reflected":
                repeat(2, () -> Planted.class.getDeclaredMethod("fetch").invoke(null));
                break;
            case "platform":
                Thread thread = new Thread(() -> unchecked(() -> repeat(2, Planted::socket)));
                thread.start();
                thread.join();
                break;
            case "helped":
                // the caller runs what another one submitted: it is not its line
                ForkJoinPool.commonPool().submit(() -> unchecked(() -> {
                    speak(new Socket("127.0.0.1", port)); // helped=1
                })).join();
                break;
        }
        pool.shutdown();
    }
}
