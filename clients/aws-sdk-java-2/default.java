import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3ClientBuilder;

final class Program implements Driver.Client {
    // snippet
    // one client for all calls, nothing set
    static S3ClientBuilder settings(S3ClientBuilder builder) {
        return builder;
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

    @Override
    public int request(String method, String url, String body) {
        URI uri = URI.create(url);
        String[] parts = uri.getPath().substring(1).split("/", 2);
        S3Client client = CLIENTS.computeIfAbsent(uri.getScheme() + "://" + uri.getAuthority(), Program::make);
        client.getObjectAsBytes(get -> get.bucket(parts[0]).key(parts[1]));
        return 200;
    }

    @Override
    public String skills() {
        return "pause,concurrent";
    }

    @Override
    public List<String> jars() {
        return List.of("s3");
    }
}
