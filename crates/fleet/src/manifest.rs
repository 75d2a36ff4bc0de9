//! What a scheduler needs to run a plan: one job with an index per message, complete and with the
//! plan inside. Each index runs `intact fleet work env:INTACT_PLAN --store STORE`.
//!
//! The scheduler keeps the number of deliveries, of concurrent workers and the time limit of the
//! plan. Texts are quoted as JSON, which YAML includes. Must not start anything.

use crate::plan::Plan;
use crate::secret::Reference;
use intact_units::number;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

/// Time of a message in addition to its measurement: for its start, connecting and the result.
const MARGIN: Duration = Duration::from_secs(60);
/// The exit code of a message that no retry can measure.
const POINTLESS: u8 = 2;
/// The longest name of a Kubernetes Job: `-INDEX` follows in the names of its pods, which have at
/// most 63 characters.
const LONGEST_NAME: usize = 50;
/// Variables from which the store takes its credentials where no role gives them.
const CREDENTIALS: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"];

/// A scheduler of jobs with indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// An Indexed Job.
    Kubernetes,
    /// An array job of AWS Batch.
    Batch,
    /// An array job of Slurm.
    Slurm,
    /// A matrix of GitHub Actions.
    Github,
}

impl Scheduler {
    /// All, by name.
    pub const ALL: [(&str, Scheduler); 4] = [
        ("kubernetes", Scheduler::Kubernetes),
        ("batch", Scheduler::Batch),
        ("slurm", Scheduler::Slurm),
        ("github", Scheduler::Github),
    ];

    /// The most indices of one job.
    fn most(self) -> u64 {
        match self {
            Scheduler::Kubernetes => 100_000,
            Scheduler::Batch => 10_000,
            // the cluster's MaxArraySize, 1,001 by default
            Scheduler::Slurm => u64::MAX,
            Scheduler::Github => 256,
        }
    }
}

/// The plan has more messages than the scheduler takes in one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the plan has {messages} messages, and a job of this scheduler at most {most}: use a longer slice or fewer repetitions"
)]
pub struct TooManyMessages {
    messages: u64,
    most: u64,
}

/// A manifest for a plan.
pub struct Manifest<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Its text.
    pub text: &'a str,
    /// The store, as a worker names it.
    pub store: &'a str,
    /// The image with `intact` as its entry point; Slurm needs none.
    pub image: &'a str,
}

impl Manifest<'_> {
    /// The text of the manifest.
    ///
    /// # Errors
    /// If the plan has too many messages.
    pub fn write(&self, scheduler: Scheduler) -> Result<String, TooManyMessages> {
        let (messages, most) = (self.plan.len(), scheduler.most());
        if messages > most {
            return Err(TooManyMessages { messages, most });
        }
        Ok(match scheduler {
            Scheduler::Kubernetes => self.kubernetes(),
            Scheduler::Batch => self.batch(),
            Scheduler::Slurm => self.slurm(),
            Scheduler::Github => self.github(),
        })
    }

    /// The first line of each manifest.
    fn title(&self) -> String {
        format!(
            "# Campaign {}: {} messages, {} at once. The report: intact fleet report {}",
            self.plan.id,
            number::count(self.plan.len()),
            self.plan.limits.workers,
            self.store
        )
    }

    /// The time limit of one message.
    fn time(&self) -> Duration {
        let targets = self.plan.targets.iter();
        let longest = targets.map(|target| self.plan.ms_of(target)).max();
        Duration::from_millis(longest.unwrap_or(0)) + MARGIN
    }

    fn minutes(&self) -> u64 {
        self.time().as_secs().div_ceil(60)
    }

    /// Variables that workers read: secrets of the plan, then credentials of the store.
    fn variables(&self) -> BTreeSet<String> {
        let references = self
            .plan
            .targets
            .iter()
            .flat_map(|target| target.references());
        let mut names: BTreeSet<String> = references
            .filter_map(|reference| match reference {
                Reference::Env(name) => Some(name),
                Reference::File(_) => None,
            })
            .collect();
        if self.store.starts_with("s3://") {
            names.extend(CREDENTIALS.map(str::to_owned));
        }
        names
    }

    /// The plan's id as a name of Kubernetes and AWS Batch (RFC 1123: a label).
    fn name(&self) -> String {
        let id = self.plan.id.to_ascii_lowercase().replace('_', "-");
        let from = id.len().saturating_sub(LONGEST_NAME);
        id[from..].trim_start_matches('-').to_owned()
    }

    fn kubernetes(&self) -> String {
        let plan = self.plan;
        // Kubernetes expands $(NAME) in values
        let text = quoted(&self.text.replace("$(", "$$("));
        format!(
            "{title}
# Variables of the plan and of the store: kubectl create secret generic {name} --from-literal NAME=VALUE
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completionMode: Indexed
  completions: {messages}
  parallelism: {workers}
  # the plan's deliveries; an index that no retry can measure fails, the others go on
  backoffLimitPerIndex: {retries}
  podFailurePolicy:
    rules:
      - action: FailIndex
        onExitCodes:
          containerName: worker
          operator: In
          values: [{POINTLESS}]
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
  template:
    spec:
      restartPolicy: Never
      activeDeadlineSeconds: {seconds}
      # serviceAccountName: NAME, if a role that is bound to it may write to the store
      automountServiceAccountToken: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: worker
          image: {image}
          args: [fleet, work, env:INTACT_PLAN, --store, {store}]
          env:
            - name: INTACT_PLAN
              value: {text}
          envFrom:
            - secretRef:
                name: {name}
                optional: true
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          resources:
            # whole CPUs: a throttled worker measures its own throttling
            requests:
              cpu: \"1\"
              memory: 256Mi
            limits:
              cpu: \"1\"
              memory: 512Mi
          volumeMounts:
            # rows of a message are kept here until it is over
            - name: tmp
              mountPath: /tmp
      volumes:
        - name: tmp
          emptyDir:
            sizeLimit: 1Gi
",
            title = self.title(),
            name = self.name(),
            messages = plan.len(),
            workers = plan.limits.workers,
            retries = plan.limits.deliveries - 1,
            seconds = self.time().as_secs(),
            image = quoted(self.image),
            store = quoted(self.store),
        )
    }

    fn batch(&self) -> String {
        let plan = self.plan;
        let name = self.name();
        // the smallest array has two jobs
        let is_array = plan.len() > 1;
        let mut command = vec!["fleet", "work", "env:INTACT_PLAN", "--store", self.store];
        if !is_array {
            command.extend(["--index", "0"]);
        }
        let slots = json!({
            "consumableResourceName": name,
            "resourceType": "REPLENISHABLE",
            "totalQuantity": plan.limits.workers,
        });
        let definition = json!({
            "jobDefinitionName": name,
            "type": "container",
            "containerProperties": {
                "image": self.image,
                "command": command,
                "environment": [{"name": "INTACT_PLAN", "value": self.text}],
                "resourceRequirements": [
                    {"type": "VCPU", "value": "1"},
                    {"type": "MEMORY", "value": "512"},
                ],
            },
            "retryStrategy": {
                "attempts": plan.limits.deliveries.min(10),
                "evaluateOnExit": [
                    {"onExitCode": POINTLESS.to_string(), "action": "EXIT"},
                    {"onReason": "*", "action": "RETRY"},
                ],
            },
            "timeout": {"attemptDurationSeconds": self.time().as_secs()},
            "consumableResourceProperties": {
                "consumableResourceList": [{"consumableResource": name, "quantity": 1}],
            },
        });
        let mut job = json!({"jobName": name, "jobDefinition": name});
        if is_array {
            job["arrayProperties"] = json!({"size": plan.len()});
        }
        let mut script = format!(
            "#!/bin/sh\n{}\n# JOB_QUEUE=NAME sh FILE. A role of the queue's instances may write to the store\nset -eu\n",
            self.title()
        );
        for (operation, document, more) in [
            ("create-consumable-resource", slots, ""),
            ("register-job-definition", definition, ""),
            (
                "submit-job",
                job,
                " --job-queue \"${JOB_QUEUE:?name a job queue}\"",
            ),
        ] {
            let _ = writeln!(
                script,
                "aws batch {operation}{more} --cli-input-json \"$(cat <<'JSON'\n{document:#}\nJSON\n)\""
            );
        }
        script
    }

    fn slurm(&self) -> String {
        let plan = self.plan;
        let mut end = "END_OF_PLAN".to_owned();
        while self.text.lines().any(|line| line == end) {
            end.push('_');
        }
        format!(
            "#!/bin/sh
{title}
# sbatch FILE. A cluster takes indices below its MaxArraySize (scontrol show config)
#SBATCH --job-name={name}
#SBATCH --array=0-{last}%{workers}
#SBATCH --cpus-per-task=1
#SBATCH --time={minutes}
#SBATCH --requeue
INTACT_PLAN=$(cat <<'{end}'
{text}
{end}
)
export INTACT_PLAN
exec intact fleet work env:INTACT_PLAN --store {store}
",
            title = self.title(),
            name = plan.id,
            last = plan.len().saturating_sub(1),
            workers = plan.limits.workers,
            minutes = self.minutes(),
            text = self.text.trim_end(),
            store = shell_word(self.store),
        )
    }

    fn github(&self) -> String {
        let plan = self.plan;
        let is_not_expression = |text: &str| text.replace("${{", "${{ '${{' }}");
        let indices: Vec<String> = (0..plan.len()).map(|index| index.to_string()).collect();
        let mut variables = String::new();
        let mut passed = String::new();
        for name in self.variables() {
            let _ = write!(variables, "\n  {name}: ${{{{ secrets.{name} }}}}");
            let _ = write!(passed, " --env {name}");
        }
        let run = |words: &str| {
            let image = shell_word(self.image);
            quoted(&format!(
                "docker run --rm --env INTACT_PLAN{passed} {image} fleet {words}"
            ))
        };
        let store = is_not_expression(&shell_word(self.store));
        format!(
            "{title}
name: {name}
on: workflow_dispatch
permissions: {{}}
env:
  INTACT_PLAN: {text}{variables}
jobs:
  measure:
    runs-on: ubuntu-latest
    timeout-minutes: {minutes}
    strategy:
      fail-fast: false
      max-parallel: {workers}
      matrix:
        index: [{indices}]
    steps:
      - run: {work}
  report:
    needs: measure
    if: always()
    runs-on: ubuntu-latest
    steps:
      - run: {report}
",
            title = self.title(),
            name = quoted(&plan.id),
            text = quoted(&is_not_expression(self.text)),
            minutes = self.minutes(),
            workers = plan.limits.workers,
            indices = indices.join(", "),
            work = run(&format!(
                "work env:INTACT_PLAN --store {store} --index ${{{{ matrix.index }}}}"
            )),
            report = run(&format!("report {store} --plan {}", plan.id)),
        )
    }
}

/// A text in double quotes, for JSON and YAML.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A text as one word of a POSIX shell.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn written(repetitions: u32, scheduler: Scheduler) -> Result<String, TooManyMessages> {
        let text = format!(
            "# $(NOT_A_VARIABLE) ${{{{ not.an.expression }}}} it's\nname = \"A_rig\"\nrepetitions = {repetitions}\nduration = \"90s\"\n\
             [limits]\nrequests = 100000000\nrate = 100.0\nworkers = 7\n[[target]]\nname = \"t\"\nurl = \"http://host.test/\"\n\
             headers = [\"Authorization: env:TOKEN\"]\ni-own-this = \"host.test\"\n[axes]\nkeepalive = [\"on\", \"off\"]\n\n"
        );
        let plan = crate::parse(Path::new("rig.toml"), &text).unwrap();
        Manifest {
            plan: &plan,
            text: &text,
            store: "s3://bucket/it's",
            image: "registry.example/intact:1",
        }
        .write(scheduler)
    }

    #[test]
    fn the_limits_of_the_plan_are_those_of_the_job() {
        let job = written(10, Scheduler::Kubernetes).unwrap();
        for line in [
            "  completions: 20\n",
            "  parallelism: 7\n",
            "  backoffLimitPerIndex: 2\n",
            "activeDeadlineSeconds: 150\n",
            "$$(NOT_A_VARIABLE)",
        ] {
            assert!(job.contains(line), "{line}: {job}");
        }
        let batch = written(10, Scheduler::Batch).unwrap();
        for part in ["\"size\": 20", "\"totalQuantity\": 7", "\"attempts\": 3"] {
            assert!(batch.contains(part), "{part}: {batch}");
        }
        let slurm = written(10, Scheduler::Slurm).unwrap();
        assert!(
            slurm.contains("--array=0-19%7\n#") && slurm.contains("--time=3\n"),
            "{slurm}"
        );
        let github = written(10, Scheduler::Github).unwrap();
        assert!(
            github.contains("max-parallel: 7\n") && github.contains(", 19]\n"),
            "{github}"
        );
        assert!(github.contains("TOKEN: ${{ secrets.TOKEN }}\n"), "{github}");
        assert!(
            github.contains("${{ '${{' }} not.an.expression"),
            "{github}"
        );
    }

    #[test]
    fn a_plan_with_more_messages_than_a_scheduler_takes_is_refused_with_the_remedy() {
        for scheduler in [Scheduler::Kubernetes, Scheduler::Batch, Scheduler::Github] {
            let most = u32::try_from(scheduler.most()).unwrap();
            assert!(written(most / 2, scheduler).is_ok(), "{scheduler:?}");
            let words = written(most / 2 + 1, scheduler).unwrap_err().to_string();
            assert!(words.contains("use a longer slice"), "{words}");
        }
    }

    #[test]
    fn a_single_message_is_no_array_of_batch() {
        let text = "name = \"one\"\nrepetitions = 1\nduration = \"1s\"\n[limits]\nrequests = 1000\nrate = 10.0\nworkers = 1\n\
             [[target]]\nname = \"t\"\nurl = \"http://host.test/\"\ni-own-this = \"host.test\"\n";
        let plan = crate::parse(Path::new("rig.toml"), text).unwrap();
        let manifest = Manifest {
            plan: &plan,
            text,
            store: "s3://b",
            image: "i",
        };
        let script = manifest.write(Scheduler::Batch).unwrap();
        assert!(
            !script.contains("arrayProperties") && script.contains("\"--index\""),
            "{script}"
        );
    }
}
