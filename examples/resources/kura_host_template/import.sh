tofu import kura_host_template.public public
