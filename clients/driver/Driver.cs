// Runs one client program for the harness. The protocol is in clients/README.md.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;

/// What a program provides.
interface IClient
{
    /// Makes a request, reads the body to its end and gives the status.
    Task<int> Request(string method, string url, string body);
}

static class Driver
{
    public static TimeSpan Limit(string name, int usual)
    {
        var given = Environment.GetEnvironmentVariable(name);
        return TimeSpan.FromMilliseconds(given == null ? usual : int.Parse(given));
    }

    static async Task<string> Outcome(IClient client, string method, string url)
    {
        try
        {
            return (await client.Request(method, url, method == "POST" ? "ping" : null)).ToString();
        }
        catch (Exception error)
        {
            return '"' + error.GetType().Name + '"';
        }
    }

    static void Main()
    {
        IClient client = new Program();
        // the runtime is too old for the system's TLS library
        Console.WriteLine("{\"versions\":{\"dotnet\":\"" + Environment.Version
            + "\"},\"can\":[\"pause\",\"concurrent\",\"post\",\"status\",\"plain-only\"]}");
        for (var line = Console.ReadLine(); line != null; line = Console.ReadLine())
        {
            var words = line.Split(' ');
            Func<int, Task<string>> one = _ => Outcome(client, words[2], words[4]);
            var numbers = Enumerable.Range(0, int.Parse(words[0]));
            var outcomes = words[1] == "at-once"
                ? Task.WhenAll(numbers.Select(one).ToArray()).Result
                : numbers.Select(number => one(number).Result).ToArray();
            Console.WriteLine("[" + string.Join(",", outcomes) + "]");
        }
        Environment.Exit(0);
    }
}
