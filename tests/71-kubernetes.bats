#!/usr/bin/env bats
# The manifests of entrypoint/kubernetes: against the schemas of Kubernetes (kubernetes-validate), against the restricted
# Pod Security profile (the rules of 1.37, below), and played by podman kube play where podman knows the kind. Played
# with changes that stand for what is not here: images that have the double in them; for the kubelet, the values of fieldRef and
# $(NAME) in arguments, a file mounted as termination log, a claim's owner (fsGroup).

# shellcheck disable=SC2030,SC2031 # each test has its own `status`

load helper

CONTAINERS=$TOP/build/containers
PODMAN=$CONTAINERS/podman
MANIFESTS=$TOP/entrypoint/kubernetes

setup_file() {
	[[ $EUID -eq 0 ]] || skip 'needs root'
	local tool
	for tool in podman runc catatonit mmdebstrap; do
		command -v "$tool" >/dev/null || skip "$tool is not installed (ci/deps.sh test)"
	done
	"$BATS_TEST_DIRNAME/container-base.sh" >&2
	local podman=$BATS_TEST_DIRNAME/../build/containers/podman
	{ "$podman" pod rm --force --all --time 0; "$podman" volume rm --force --all; } >/dev/null 2>&1 || true
	printf 'FROM localhost/kd-test-python:double\nUSER 65532\nCMD ["sh", "-c", "echo app started; ls /reports; exec sleep 300"]\n' |
		"$podman" build --quiet --timestamp 0 -t localhost/app:1 -f - "$BATS_TEST_DIRNAME/stubs" >/dev/null
}

teardown() {
	[[ ! -x $PODMAN ]] || { "$PODMAN" pod rm --force --all --time 0; "$PODMAN" volume rm --force --all; } >/dev/null 2>&1 || true
}

# Python with kubernetes-validate.
validator() {
	local python
	for python in "$CONTAINERS/venv/bin/python" /usr/bin/python3; do
		! "$python" -c 'import kubernetes_validate' 2>/dev/null || { PYTHON_VALIDATOR=$python && return; }
	done
	skip 'kubernetes-validate is not installed (ci/deps.sh test)'
}

# schema VERSION FILE...: every document strictly against the schema. A name stands in for generateName, which the validator does
# not know as one.
schema() {
	"$PYTHON_VALIDATOR" - "$@" <<-'P'
		import sys, yaml, kubernetes_validate
		for path in sys.argv[2:]:
		    for document in yaml.safe_load_all(open(path)):
		        if 'generateName' in document['metadata']:
		            document['metadata'].setdefault('name', document['metadata']['generateName'] + 'x')
		        kubernetes_validate.validate(document, sys.argv[1], strict=True)
	P
}

# restricted FILE...: prints each breach of the restricted profile (Pod Security Standards, policy version 1.37, Linux pods).
restricted() {
	"$PYTHON_VALIDATOR" - "$@" <<-'P'
		import sys, yaml

		# pod-security-admission, check_restrictedVolumes.go; image since 1.33 (kubernetes/kubernetes pull request 130394)
		VOLUMES = {'configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', 'image', 'persistentVolumeClaim', 'projected', 'secret'}
		SYSCTLS = {'kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.ip_unprivileged_port_start',
		           'net.ipv4.tcp_syncookies', 'net.ipv4.ping_group_range', 'net.ipv4.ip_local_reserved_ports',
		           'net.ipv4.tcp_keepalive_time', 'net.ipv4.tcp_fin_timeout', 'net.ipv4.tcp_keepalive_intvl',
		           'net.ipv4.tcp_keepalive_probes', 'net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem'}
		SELINUX = {None, '', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t'}

		def breaches(metadata, spec):
		    pod = spec.get('securityContext') or {}
		    for key in 'hostNetwork', 'hostPID', 'hostIPC':
		        if spec.get(key):
		            yield key
		    for volume in spec.get('volumes') or []:
		        if not VOLUMES & set(volume):
		            yield 'volume ' + volume['name']
		    for sysctl in pod.get('sysctls') or []:
		        if sysctl['name'] not in SYSCTLS:
		            yield 'sysctl ' + sysctl['name']
		    for key, value in (metadata.get('annotations') or {}).items():
		        if key.startswith('container.apparmor.security.beta.kubernetes.io/') and \
		           value != 'runtime/default' and not value.startswith('localhost/'):
		            yield 'AppArmor'
		    containers = [c for key in ('initContainers', 'containers', 'ephemeralContainers') for c in spec.get(key) or []]
		    for context in [pod] + [c.get('securityContext') or {} for c in containers]:
		        if context.get('runAsUser') == 0:
		            yield 'runAsUser 0'
		        if (context.get('seccompProfile') or {}).get('type', 'RuntimeDefault') not in ('RuntimeDefault', 'Localhost'):
		            yield 'seccompProfile'
		        if (context.get('appArmorProfile') or {}).get('type', 'RuntimeDefault') not in ('RuntimeDefault', 'Localhost'):
		            yield 'AppArmor'
		        selinux = context.get('seLinuxOptions') or {}
		        if selinux.get('type') not in SELINUX or selinux.get('user') or selinux.get('role'):
		            yield 'SELinux'
		        if (context.get('windowsOptions') or {}).get('hostProcess'):
		            yield 'hostProcess'
		    for container in containers:
		        own = container.get('securityContext') or {}
		        name = container['name'] + ': '
		        if own.get('privileged'):
		            yield name + 'privileged'
		        if own.get('procMount', 'Default') != 'Default':
		            yield name + 'procMount'
		        if own.get('allowPrivilegeEscalation') is not False:
		            yield name + 'allowPrivilegeEscalation'
		        if own.get('runAsNonRoot', pod.get('runAsNonRoot')) is not True:
		            yield name + 'runAsNonRoot'
		        if 'seccompProfile' not in own and 'seccompProfile' not in pod:
		            yield name + 'no seccompProfile'
		        capabilities = own.get('capabilities') or {}
		        if 'ALL' not in (capabilities.get('drop') or []) or set(capabilities.get('add') or []) - {'NET_BIND_SERVICE'}:
		            yield name + 'capabilities'
		        if any(port.get('hostPort') for port in container.get('ports') or []):
		            yield name + 'hostPort'
		        hooks = [container.get(p) or {} for p in ('livenessProbe', 'readinessProbe', 'startupProbe')]
		        hooks += [(container.get('lifecycle') or {}).get(h) or {} for h in ('postStart', 'preStop')]
		        if any((hook.get(kind) or {}).get('host') for hook in hooks for kind in ('httpGet', 'tcpSocket')):
		            yield name + 'host of a probe'

		found = 0
		for path in sys.argv[1:]:
		    for document in yaml.safe_load_all(open(path)):
		        pod = document if document['kind'] == 'Pod' else document['spec'].get('template')
		        for breach in breaches(pod.get('metadata') or {}, pod['spec']) if pod else ():
		            found = 1
		            print('%s: %s' % (path.rsplit('/', 1)[-1], breach))
		sys.exit(found)
	P
}

# change FILE PYTHON: the first document of FILE as `d`, its pod as `pod`, changed and printed.
change() {
	"$PYTHON_VALIDATOR" - "$@" <<-'P'
		import sys, yaml
		d = yaml.safe_load(open(sys.argv[1]))
		pod = d if d['kind'] == 'Pod' else d['spec'].get('template')
		first = (pod['spec'].get('initContainers') or pod['spec']['containers'])[0]
		exec(sys.argv[2])
		print(yaml.safe_dump(d))
	P
}

# as_pod FILE PYTHON: the pod of a manifest as podman can play it here (see the head of this file), in pod.yaml: with the
# double in our images, a termination log in $T/log, and initContainers that a second start of the pod runs again.
as_pod() {
	: >log && chmod 666 log
	change "$1" "
pod.setdefault('metadata', {}).setdefault('name', 'x')
${2:-}
pod['spec'].pop('nodeSelector', 0)
pod['metadata'].setdefault('annotations', {})['io.podman.annotations.init.container.type'] = 'always'
for c in pod['spec'].get('initContainers', []) + pod['spec']['containers']:
    if 'kd-preflight' in c['image']:
        c['image'] = c['image'].split(':')[0] + ':double'
    for e in c.get('env', []):
        if 'valueFrom' in e:
            value = {'spec.nodeName': 'node-1', 'metadata.name': pod['metadata']['name']}[e.pop('valueFrom')['fieldRef']['fieldPath']]
            c['args'] = [a.replace('\$(%s)' % e['name'], value) for a in c['args']]
            e['value'] = value
first.setdefault('volumeMounts', []).append({'name': 'log', 'mountPath': '/dev/termination-log'})
pod['spec'].setdefault('volumes', []).append({'name': 'log', 'hostPath': {'path': '$T/log', 'type': 'File'}})
d = dict(pod, apiVersion='v1', kind='Pod')" >pod.yaml
}

fault() { # SPEC: for as_pod
	echo "first.setdefault('env', []).append({'name': 'KD_DOUBLE_FAULT', 'value': '$1'})"
}

play() {
	status=0
	timeout 60 "$PODMAN" kube play --network none "${1:-pod.yaml}" >out 2>err </dev/null || status=$?
}

# ended CONTAINER: waits for it and prints its exit status
ended() {
	timeout 60 "$PODMAN" wait "$1"
}

# said CONTAINER PATTERN
said() {
	local tries=50
	while ((tries-- > 0)); do
		! grep -q "$2" <<<"$("$PODMAN" logs "$1" 2>&1)" || return 0
		sleep 0.1
	done
	"$PODMAN" logs "$1"
	return 1
}

@test "manifests are valid for Kubernetes 1.31 to 1.37, strictly" {
	validator
	local minor files
	for minor in 31 33 35 37; do
		mapfile -t files < <(find "$MANIFESTS" -name '*.yaml')
		# restartPolicyRules came with 1.34
		((minor >= 34)) || mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -v restart-rules)
		schema "1.$minor" "${files[@]}"
	done
}

@test "control: a misspelt key and a wrong kind of value are refused" {
	validator
	local broken
	for broken in "first['volumeMount'] = []" "pod['spec']['restartPolicy'] = 3" "first['resources'] = {'limit': {}}"; do
		change "$MANIFESTS/init-container.yaml" "$broken" >broken.yaml
		! schema 1.37 broken.yaml 2>err || { echo "passes: $broken"; return 1; }
		grep -q ValidationError err
	done
}

@test "manifests hold the restricted Pod Security profile, and what every pod of ours should have" {
	validator
	restricted "$MANIFESTS"/*.yaml
	local file
	for file in "$MANIFESTS"/*.yaml; do
		[[ $file != *reports-pvc.yaml ]] || continue
		change "$file" "
assert pod['spec']['automountServiceAccountToken'] is False
for c in pod['spec'].get('initContainers', []) + pod['spec']['containers']:
    assert c['securityContext']['readOnlyRootFilesystem'] is True, c['name']
    assert c['image'].startswith('localhost/'), c['image']" >/dev/null
	done
}

@test "control: each breach of the profile is seen" {
	validator
	local breach
	while IFS= read -r breach; do
		change "$MANIFESTS/init-container.yaml" "$breach" >breach.yaml
		! restricted breach.yaml >found || { echo "not seen: $breach"; return 1; }
		is 1 "$(wc -l <found)" "breaches by $breach"
	done <<-'B'
		pod['spec']['hostNetwork'] = True
		pod['spec']['hostPID'] = True
		pod['spec']['hostIPC'] = True
		pod['spec']['volumes'].append({'name': 'dev', 'hostPath': {'path': '/dev'}})
		pod['spec']['volumes'].append({'name': 'nfs', 'nfs': {'server': 'x', 'path': '/'}})
		pod['spec']['securityContext']['runAsUser'] = 0
		pod['spec']['securityContext']['sysctls'] = [{'name': 'kernel.msgmax', 'value': '1'}]
		pod['spec']['securityContext']['seccompProfile']['type'] = 'Unconfined'
		first['securityContext']['runAsNonRoot'] = False
		first['securityContext']['runAsUser'] = 0
		first['securityContext']['allowPrivilegeEscalation'] = True
		first['securityContext'].pop('allowPrivilegeEscalation')
		first['securityContext']['privileged'] = True
		first['securityContext']['capabilities']['add'] = ['SYS_ADMIN']
		first['securityContext'].pop('capabilities')
		first['securityContext']['procMount'] = 'Unmasked'
		first['securityContext']['seLinuxOptions'] = {'type': 'spc_t'}
		first['securityContext']['appArmorProfile'] = {'type': 'Unconfined'}
		first['ports'] = [{'containerPort': 80, 'hostPort': 80}]
		first['livenessProbe'] = {'httpGet': {'port': 80, 'host': 'x'}}
		pod['metadata']['annotations'] = {'container.apparmor.security.beta.kubernetes.io/app': 'unconfined'}
	B
}

@test "every code of the check is in exactly one rule of failure-policy.yaml, named in its comment" {
	validator
	"$KD" --list-codes >codes
	"$PYTHON_VALIDATOR" - "$MANIFESTS/failure-policy.yaml" "$MANIFESTS/restart-rules.yaml" codes <<-'P'
		import re, sys, yaml
		text = open(sys.argv[1]).read()
		codes = {}
		for line in open(sys.argv[3]):
		    number, name = line.split()[:2]
		    if number.isdigit() and number != '0':
		        codes.setdefault(int(number), []).append(name)
		rules = [r['onExitCodes'] for r in yaml.safe_load(text)['spec']['podFailurePolicy']['rules'] if 'onExitCodes' in r]
		assert all(r['containerName'] == 'preflight' and r['operator'] == 'In' for r in rules)
		assert sorted(v for r in rules for v in r['values']) == sorted(codes), 'codes missing or twice'
		for comment, values in re.findall(r'((?: *# [A-Z_, or\n#]+\n)+) *values: \[([0-9, ]+)\]', text):
		    named = re.findall(r'[A-Z_]{4,}', comment)
		    assert named == [n for v in values.split(', ') for n in codes[int(v)]], (named, values)
		rule, = yaml.safe_load(open(sys.argv[2]))['spec']['initContainers'][0]['restartPolicyRules']
		assert set(rule['exitCodes']['values']) < set(codes)
	P
	# and in the table of the page
	local number
	while read -r number _; do
		[[ $number =~ ^[1-9][0-9]*$ ]] || continue
		grep -E '^\| [0-9, ]+ \|' "$MANIFESTS/README.md" | cut -d'|' -f2 | grep -qw "$number" || { echo "README: no $number"; return 1; }
	done <codes
}

@test "initContainer passes: the application starts and finds the report" {
	validator
	as_pod "$MANIFESTS/init-container.yaml"
	play
	is 0 "$status"
	said app-app 'kd-preflight-.*json'
	said app-app 'app started'
	"$PODMAN" logs app-preflight >report.json 2>err
	expect 0 GPU_CHECK_PASSED complete report.json
	is '"GPU_CHECK_PASSED"' "$(value code log)" # without PROGRAM a pass is told, too
}

@test "initContainer fails: the application never starts, and the termination message says why" {
	validator
	as_pod "$MANIFESTS/init-container.yaml" "$(fault cuInit=error:802)"
	play
	[[ $status -ne 0 ]]
	is 6 "$("$PODMAN" inspect --format '{{.State.ExitCode}}' app-preflight)"
	is created "$("$PODMAN" inspect --format '{{.State.Status}}' app-app)"
	[[ -z $("$PODMAN" logs app-app 2>&1) ]]
	is '"GPU_UNAVAILABLE"' "$(value code log)"
	is '"device"' "$(value stage log)"
	(($(stat -c %s log) <= 1024))
	is 1 "$(wc -l <log)"
}

@test "an initContainer that runs again gets a report of its own" {
	validator
	as_pod "$MANIFESTS/init-container.yaml"
	play
	is 0 "$status"
	said app-app 'app started'
	"$PODMAN" pod stop --time 0 app >/dev/null 2>&1
	"$PODMAN" pod start app >/dev/null
	local folder tries=50
	folder=$("$PODMAN" volume inspect reports --format '{{.Mountpoint}}')
	while ((tries-- > 0)) && [[ $(find "$folder" -name '*.json' | wc -l) -lt 2 ]]; do sleep 0.1; done
	is 2 "$(find "$folder" -name '*.json' | wc -l)" reports
	local report
	for report in "$folder"/*.json; do valid "$report"; done
}

@test "ENTRYPOINT form: the workload runs behind a pass, and its exit status is the pod's" {
	validator
	as_pod "$MANIFESTS/entrypoint.yaml"
	play
	is 0 "$(ended train-train)"
	said train-train 'train: 100 steps done'
	valid "$("$PODMAN" volume inspect reports --format '{{.Mountpoint}}')"/*.json
	[[ ! -s log ]] # the workload's own, once it has started
}

@test "ENTRYPOINT form: a failed check is the pod's failure, with its code and message" {
	validator
	as_pod "$MANIFESTS/entrypoint.yaml" "$(fault cuLaunchKernel=zeros)"
	play
	is 8 "$(ended train-train)"
	[[ $("$PODMAN" logs train-train 2>&1) != *train:* ]]
	is '"CHECK_FAILED"' "$(value code log)"
}

# The claim, writable for our user: the kubelet sees to it by fsGroup, which podman does not know.
claim() {
	play "$MANIFESTS/reports-pvc.yaml"
	is 0 "$status"
	CLAIM=$("$PODMAN" volume inspect kd-preflight-reports --format '{{.Mountpoint}}')
	# podman gives a volume to the user of the first container that mounts it, which is the pod's own one.
	"$PODMAN" run --rm --network none -v kd-preflight-reports:/x localhost/kd-preflight-init:double --version >/dev/null
	chown 65532:65532 "$CLAIM"
}

@test "a sweep writes to the claim under the node's name, a Job's initContainer too, and the summary reads them" {
	validator
	claim
	# One card is what a double shows here, not eight: DEVICE_INDEX_INVALID; with one asked, a pass.
	as_pod "$MANIFESTS/sweep-job.yaml" "pod['metadata']['name'] = 'sweep-1'"
	play
	is 7 "$(ended sweep-1-preflight)"
	is '"DEVICE_INDEX_INVALID"' "$(value code log)"
	as_pod "$MANIFESTS/sweep-job.yaml" "pod['metadata']['name'] = 'sweep-2'
first['args'][1] = '--expect-devices=1'"
	play
	is 0 "$(ended sweep-2-preflight)"
	as_pod "$MANIFESTS/failure-policy.yaml" "pod['metadata']['name'] = 'job'"
	play
	is 0 "$status"
	[[ -s $CLAIM/node-1.sweep-1.json && -s $CLAIM/node-1.sweep-2.json ]]
	is 3 "$(find "$CLAIM" -name '*.json' | wc -l)" reports
	as_pod "$MANIFESTS/sweep-summary.yaml"
	play
	is 7 "$(ended kd-preflight-summary-summary)"
	said kd-preflight-summary-summary 'GPU_CHECK_PASSED'
	said kd-preflight-summary-summary 'node-1.sweep-1'
}

@test "the DaemonSet's initContainer makes a folder for its node" {
	validator
	claim
	as_pod "$MANIFESTS/sweep-daemonset.yaml" "pod['metadata']['name'] = 'sweep'
pod['spec']['containers'][0]['image'] = 'localhost/app:1'"
	play
	is 0 "$status"
	valid "$CLAIM"/node-1/*.json
}
