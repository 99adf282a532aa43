{{- define "plimsoll.labels" -}}
app.kubernetes.io/name: {{ .Values.name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "plimsoll.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "plimsoll.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The names of the ConfigMaps, without their namespaces, each once. */}}
{{- define "plimsoll.configMapNames" -}}
{{- $names := list }}
{{- range .Values.configMaps }}{{ $names = append $names (last (splitList "/" .)) }}{{ end }}
{{- toYaml (uniq $names) }}
{{- end }}

{{/* Root without privileges: the owner of the files of the control groups, and no more. */}}
{{- define "plimsoll.confinement" -}}
runAsUser: 0
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
seccompProfile:
  type: {{ .Values.seccompProfile }}
{{- if and .Values.appArmorProfile (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) }}
appArmorProfile:
  type: {{ .Values.appArmorProfile }}
{{- end }}
seLinuxOptions:
  type: {{ .Values.seLinuxType }}
{{- end }}

{{/* AppArmor's profile before it was a field of the container: an annotation for each of them. */}}
{{- define "plimsoll.appArmorAnnotations" -}}
{{- $root := index . 0 }}
{{- if and $root.Values.appArmorProfile (semverCompare "<1.30-0" $root.Capabilities.KubeVersion.Version) }}
{{- range rest . }}
container.apparmor.security.beta.kubernetes.io/{{ . }}: {{ eq $root.Values.appArmorProfile "RuntimeDefault" | ternary "runtime/default" "unconfined" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "plimsoll.mounts" -}}
- name: cgroup
  mountPath: /host/cgroup
- name: state
  mountPath: /run/plimsoll
{{- end }}

{{- define "plimsoll.volumes" -}}
- name: cgroup
  hostPath:
    path: {{ .Values.cgroupRoot }}
    type: Directory
- name: state
  hostPath:
    path: {{ .Values.stateDir }}
    type: DirectoryOrCreate
{{- end }}

{{/* Whether containers may ask for CPUs of their own: "true", or nothing. */}}
{{- define "plimsoll.reserves" -}}
{{- $reserve := .Values.config.reserve | default dict }}
{{- if ne ($reserve.policy | default "none") "none" }}true{{ end }}
{{- end }}
