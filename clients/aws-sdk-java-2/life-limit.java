// snippet
import java.time.Duration;
import software.amazon.awssdk.http.apache5.Apache5HttpClient;
import software.amazon.awssdk.services.s3.S3ClientBuilder;
// end

import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.S3Exception;

final class Program implements Driver.Client {
    static final long lifeMs = Driver.lifeMs();

    // snippet
    static S3ClientBuilder settings(S3ClientBuilder builder) {
        return builder.httpClientBuilder(Apache5HttpClient.builder().connectionTimeToLive(Duration.ofMillis(lifeMs)));
    }
    // end

    private static final Map<String, S3Client> CLIENTS = new ConcurrentHashMap<>();

    private static S3Client make(String endpoint) {
        return settings(S3Client.builder())
            .endpointOverride(URI.create(endpoint))
            .region(Region.US_EAST_1)
            .forcePathStyle(true)
            .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("x", "x")))
            .build();
    }

    private static S3Client client(URI uri) {
        return CLIENTS.computeIfAbsent(uri.getScheme() + "://" + uri.getAuthority(), Program::make);
    }

    @Override
    public int request(String method, String url, String body) {
        URI uri = URI.create(url);
        String[] parts = uri.getPath().substring(1).split("/", 2);
        try {
            client(uri).getObjectAsBytes(get -> get.bucket(parts[0]).key(parts[1]));
            return 200;
        } catch (S3Exception error) {
            return error.statusCode();
        }
    }

    @Override
    public int unread(String url) {
        URI uri = URI.create(url);
        String[] parts = uri.getPath().substring(1).split("/", 2);
        client(uri).getObject(get -> get.bucket(parts[0]).key(parts[1]));
        return 200;
    }

    @Override
    public String skills() {
        return "pause,concurrent,status,unread";
    }

    @Override
    public List<String> jars() {
        return List.of("s3");
    }
}
