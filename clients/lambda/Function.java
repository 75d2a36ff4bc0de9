// A minimal function: the Runtime API by sockets of its own kind, the call by the JDK's HttpClient or (CLIENT=url) HttpURLConnection.
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

public class Function {
    static final String METHOD = System.getenv().getOrDefault("METHOD", "GET");
    static final HttpClient CLIENT = HttpClient.newHttpClient();

    static int call(URI uri) throws Exception {
        if ("url".equals(System.getenv("CLIENT"))) {
            HttpURLConnection one = (HttpURLConnection) uri.toURL().openConnection();
            one.setRequestMethod(METHOD);
            if (METHOD.equals("POST")) {
                one.setDoOutput(true);
                one.getOutputStream().write('x');
            }
            try (var body = one.getInputStream()) {
                body.readAllBytes();
            }
            return one.getResponseCode();
        }
        var body = METHOD.equals("POST") ? BodyPublishers.ofString("x") : BodyPublishers.noBody();
        var request = HttpRequest.newBuilder(uri).version(HttpClient.Version.HTTP_1_1).method(METHOD, body).build();
        return CLIENT.send(request, BodyHandlers.ofString()).statusCode();
    }

    public static void main(String[] words) throws Exception {
        // a client of its own: its connection to the Runtime API is not the function's
        HttpClient api = HttpClient.newHttpClient();
        String root = "http://" + System.getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/";
        URI uri = URI.create(System.getenv("INTACT_URL"));
        for (;;) {
            var next = api.send(HttpRequest.newBuilder(URI.create(root + "next")).build(), BodyHandlers.ofString());
            String id = next.headers().firstValue("Lambda-Runtime-Aws-Request-Id").orElseThrow();
            String path = "/response", told;
            try {
                told = Integer.toString(call(uri));
            } catch (Exception error) {
                path = "/error";
                String words1 = String.valueOf(error.getMessage()).replace('"', '\'');
                told = "{\"errorType\":\"" + error.getClass().getSimpleName() + "\",\"errorMessage\":\"" + words1 + "\"}";
            }
            var answer = HttpRequest.newBuilder(URI.create(root + id + path)).POST(BodyPublishers.ofString(told)).build();
            api.send(answer, BodyHandlers.discarding());
        }
    }
}
