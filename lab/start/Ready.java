import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.ForkJoinPool;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A service that starts: it is compiled, loads classes, builds its tables, and says when it is ready and what it has seen of its limit. */
public class Ready {
    public static void main(String[] args) throws Exception {
        var seen = new TreeSet<Integer>();
        var watch = new Thread(() -> {
            while (true) {
                synchronized (seen) { seen.add(Runtime.getRuntime().availableProcessors()); }
                try { Thread.sleep(25); } catch (InterruptedException e) { return; }
            }
        });
        watch.setDaemon(true);
        watch.start();
        List<String> table = new ArrayList<>();
        for (int round = 0; round < 12; round++) {
            int r = round;
            table = IntStream.range(0, 60000).mapToObj(i -> Integer.toString(i * 31 + r, 36))
                .collect(Collectors.groupingBy(s -> s.substring(s.length() - 1))).values().stream()
                .flatMap(List::stream).sorted().collect(Collectors.toList());
        }
        var collectors = ManagementFactory.getGarbageCollectorMXBeans().stream().map(b -> b.getName()).collect(Collectors.joining(","));
        synchronized (seen) {
            System.out.println("processors=" + seen + " collectors=" + collectors + " parallelism=" + ForkJoinPool.commonPool().getParallelism() + " entries=" + table.size());
        }
    }
}
